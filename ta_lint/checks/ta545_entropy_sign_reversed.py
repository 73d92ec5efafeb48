"""TA545: the loss of a policy grows with its entropy, which punishes exploration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import factors, summands
from ta_lint.facts.values.entropies import Entropy
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("entropy", "log", "log_softmax", "*log_p*", "*logp*", "*entrop*"), ("*loss*", "*backward"))
AROUND = (("*adv*", "*reward*", "*log_prob*", "*policy*", "*actor*", "*gae*", "*return*"),)

_LOSS = regex(r"(\w+_)?loss", re.IGNORECASE)
_OF_POLICY = regex(
    r"(\w+_)?(policy|actor|pg|pi|action|surr\w*|adv\w*|gae|ratio|log_?prob\w*|critic|value|vf|v|td)(_(loss|gain|objective|term)\w*)?s?",
    re.IGNORECASE,
)
_NEGATIVE = regex(r".*neg.*|.*loss.*|.*minus.*", re.IGNORECASE)
_DEPTH = 8


@dataclass(frozen=True, eq=False)
class _Term:
    """A term of a loss with its sign, and where the sum holds it."""

    sign: int
    node: Node
    place: Node


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    judged: set[Node] = set()
    for start in _starts(module):
        terms = list(_terms(module, start, 1, start, set(), _DEPTH))
        if start in judged or not any(_is_of_policy(module, term) for term in terms):
            continue
        judged.update(term.place for term in terms)
        judged.update(_behind(module, start))
        for term in terms:
            entropy = module.entropies.of(term.node)
            if entropy is None or term.sign * entropy.sign < 0:
                continue
            place = _unsigned(module, term, entropy)
            node = place if place is not None else term.place
            if node not in reported and module.is_here(node):
                reported.add(node)
                yield _suspicion(module, node, term, is_definition=place is not None)


def _starts(module: FileFacts) -> Iterator[Node]:
    """What a backward pass starts from, then the sums that are called a loss."""
    for loss in module.gradients.losses:
        yield loss.value
    for statement in module.tree.all(cst.Assign):
        name = dotted(statement.targets[0].target) or ""
        if isinstance(statement.value, cst.BinaryOperation) and _LOSS.fullmatch(name.rpartition(".")[2]):
            yield statement.value
    for returned in module.tree.all(cst.Return):
        home = module.tree.home(returned)
        is_loss = isinstance(home, cst.FunctionDef) and "loss" in home.name.value.lower()
        if is_loss and isinstance(returned.value, cst.BinaryOperation):
            yield returned.value


def _behind(module: FileFacts, start: Node) -> list[Node]:
    """The expressions that make a loss, which has been looked at by then."""
    return [origin.node for origin in module.flow.of(start).origins]


def _terms(
    module: FileFacts, node: Node, sign: int, place: Node, seen: set[Node], depth: int
) -> Iterator[_Term]:
    """The terms of a sum, and of the sums that its names stand for."""
    for own, term in summands(node, sign):
        where = term if term is not node else place
        if depth == 0 or term in seen:
            continue
        seen.add(term)
        inner = _scaled(module, term)
        if inner is not None:
            yield from _terms(module, inner[1], own * inner[0], where, seen, depth - 1)
            continue
        made = [origin.node for origin in module.flow.of(term).origins]
        sums = [one for one in made if one is not term and _is_sum(one)]
        if not sums:
            yield _Term(own, term, where)
        for one in sums:
            if isinstance(one, cst.AugAssign):
                turned = -own if isinstance(one.operator, cst.SubtractAssign) else own
                yield from _terms(module, one.value, turned, one.value, seen, depth - 1)
                yield from _terms(module, one.target, own, where, seen, depth - 1)
            else:
                yield from _terms(module, one, own, one, seen, depth - 1)


def _is_sum(node: Node) -> bool:
    if isinstance(node, cst.AugAssign):
        return isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, (cst.Add, cst.Subtract, cst.Divide)) or _number_of(node) is not None
    if isinstance(node, cst.Call):
        return called_name(node) in ("mean", "sum") and _holds_sum(node)
    return isinstance(node, cst.UnaryOperation)


def _holds_sum(call: cst.Call) -> bool:
    inner = call.func.value if isinstance(call.func, cst.Attribute) else None
    given = inner if isinstance(inner, cst.BinaryOperation) else call.args[0].value if call.args else None
    return isinstance(given, cst.BinaryOperation) and isinstance(given.operator, (cst.Add, cst.Subtract))


def _number_of(node: cst.BinaryOperation) -> cst.Integer | cst.Float | None:
    return next((part for part in factors(node) if isinstance(part, (cst.Integer, cst.Float))), None)


def _scaled(module: FileFacts, term: Node) -> tuple[int, Node] | None:
    """The sum that a term is the mean, a part or the negative of, with the sign that it has then."""
    if isinstance(term, cst.BinaryOperation) and isinstance(term.operator, cst.Divide):
        return 1, term.left
    if isinstance(term, cst.Call) and called_name(term) in ("mean", "sum") and _holds_sum(term):
        inner = term.func.value if isinstance(term.func, cst.Attribute) else term
        return 1, inner if isinstance(inner, cst.BinaryOperation) else term.args[0].value
    if isinstance(term, cst.BinaryOperation) and isinstance(term.operator, cst.Multiply):
        parts = list(factors(term))
        rest = [part for part in parts if module.number(part) is None]
        if len(rest) == 1 and isinstance(rest[0], cst.BinaryOperation):
            negative = sum((module.number(part) or 0) < 0 for part in parts if part is not rest[0])
            return (-1) ** negative, rest[0]
    return None


def _is_of_policy(module: FileFacts, term: _Term) -> bool:
    """Whether a term of a loss is that of an actor or a critic, by a name in it."""
    return any(_OF_POLICY.fullmatch(name.value) for name in module.tree.within(term.node, cst.Name))


def _unsigned(module: FileFacts, term: _Term, entropy: Entropy) -> Node | None:
    """The sum of `p * log_p` that is called an entropy and lacks the minus."""
    if entropy.sign > 0:
        return None
    for name in module.tree.within(term.node, cst.Name):
        if "entrop" not in name.value.lower() or _NEGATIVE.fullmatch(name.value):
            continue
        definition = module.names.definition(name)
        value = definition.value if definition is not None and definition.how == "assign" else None
        named = module.entropies.of(value) if value is not None else None
        if named is not None and named.sign < 0:
            return value
    return None


def _suspicion(module: FileFacts, node: Node, term: _Term, is_definition: bool) -> Suspicion:
    if not is_definition:
        code = module.code(term.place)
        return Suspicion(
            node, f"`{code}` adds the entropy to the loss, which punishes exploration: subtract it"
        )
    message = f"`{module.code(node)}` is the entropy without its minus, so the loss punishes exploration: add the minus"
    fix = ProposedFix("put the minus before it", wrap(node, "-", "")) if isinstance(node, cst.Call) else None
    return Suspicion(node, message, ((term.place, "the term of the loss"),), fix)
