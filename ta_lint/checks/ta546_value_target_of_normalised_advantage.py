"""TA546: an advantage is normalised before the values are added to make the critic's target."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.discounting import entry
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.edits import ProposedFix, Side, move
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (
    ("*value*", "*vals*", "*critic*", "v", "vs", "v_s", "vf"),
    ("*adv*", "*gae*", "*delta*", "*td*", "A"),
)
AROUND = (("*std*", "*sigma*"),)

_VALUES = regex(r"(\w+_)?(values?|vals?|critic)(_(preds?|net\w*|fn|t|old))?|vs?|v_s|vf", re.IGNORECASE)
_ADVANTAGE = regex(
    r"(\w+_)?(advs?|advantages?\w*|gaes?|deltas?|td_?(errors?|deltas?))|(?-i:A)", re.IGNORECASE
)
_MEAN = regex(r"(\w+_)?(mean|mu|avg)", re.IGNORECASE)
_DEVIATION = regex(r"(\w+_)?(std|sigma|stddev)", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for total in module.tree.all(cst.BinaryOperation):
        if not isinstance(total.operator, cst.Add):
            continue
        for advantage, values in ((total.left, total.right), (total.right, total.left)):
            if not _is_called(values, _VALUES):
                continue
            value = module.flow.of(advantage)
            made = [origin.node for origin in value.origins if _is_standardised(module, origin.node)]
            named = (advantage, *value.aliases, *map(_outermost, value.origins))
            if len(made) != len(value.origins) or not any(
                _mentions(module, one, _ADVANTAGE) for one in named
            ):
                continue
            message = f"`{module.code(total)}` adds values to normalised advantages, which lost their scale: add them before normalising"
            related = tuple((node, "normalised here") for node in made if module.is_here(node))
            yield Suspicion(total, message, related, _fix(module, total, made))
            break


def _is_called(node: Node, pattern: re.Pattern[str]) -> bool:
    """Whether a value, or the network whose output it is, has a name of a kind: `values[t]`, `critic(states).squeeze(-1)`."""
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Attribute):
            if pattern.fullmatch(node.attr.value):
                return True
            node = node.value
        elif isinstance(node, cst.Subscript):
            if pattern.fullmatch(entry(node) or ""):
                return True
            node = node.value
        elif isinstance(node, cst.Call):
            node = node.func
        else:
            return False
    return pattern.fullmatch(node.value) is not None


def _is_standardised(module: FileFacts, node: Node) -> bool:
    """Whether something is divided by its deviation, without its mean."""
    match node:
        case cst.BinaryOperation(
            left=cst.BinaryOperation(operator=cst.Subtract(), right=mean),
            operator=cst.Divide(),
            right=deviation,
        ):
            return _mentions(module, mean, _MEAN) and _mentions(module, deviation, _DEVIATION)
        case cst.AugAssign(target=target, operator=cst.DivideAssign(), value=deviation):
            return _mentions(module, deviation, _DEVIATION) and _is_centred(module, target)
    return False


def _is_centred(module: FileFacts, target: Node) -> bool:
    """Whether a function subtracts a mean from a variable in place."""
    subtractions = (
        other.value
        for other in module.tree.own(module.tree.home(target), cst.AugAssign)
        if isinstance(other.operator, cst.SubtractAssign) and dotted(other.target) == dotted(target)
    )
    return any(_mentions(module, value, _MEAN) for value in subtractions)


def _mentions(module: FileFacts, node: Node, pattern: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(name.value) for name in module.tree.within(node, cst.Name))


def _outermost(origin: Origin) -> Node:
    """The call that leads to the creation of a value, or the expression that creates it."""
    node, frame = origin.node, origin.frame
    while frame is not None:
        node, frame = frame.call, frame.outer
    return node


def _fix(module: FileFacts, total: Node, made: list[Node]) -> ProposedFix | None:
    """Moves the sum before the statement that normalises, where that is the line before."""
    if len(made) != 1 or not module.is_here(made[0]) or not isinstance(made[0], cst.BinaryOperation):
        return None
    line, before = (module.tree.parent[module.tree.statement(node)] for node in (total, made[0]))
    block = module.tree.parent[line]
    lines: list[Node] = list(block.body) if isinstance(block, cst.IndentedBlock) else []
    if before not in lines or line not in lines or lines.index(line) != lines.index(before) + 1:
        return None
    edits = move(module.tree, module.places, total, made[0], Side.START)
    return ProposedFix("add the values before", edits) if edits else None
