"""TA541: a target network, or an old policy, is built and never copied from the network that learns."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind
from ta_lint.syntax.tree import Node, Tree, dotted, is_name

KEYWORDS = (("*target*", "*_old*", "old_*", "*tgt*"),)

_TARGET = regex(
    r"target|tgt|(\w+_)?(target|tgt)(_(\w*net\w*|model|critic\w*|actor\w*|policy|q\w*|v\w*|agent|dqn))?\d?|"
    r"(target|tgt)_?(\w*net\w*|model|critic\w*|actor\w*|policy|q\w*|v\w*|agent|dqn)\d?|"
    r"(policy|actor|pi|actor_critic|model|net)_old|old_(policy|actor|pi|actor_critic)",
    re.IGNORECASE,
)
_DISTILLS = regex(r"predict\w*|student\w*|rnd\w*|(\w*_)?(source|src)(_\w*)?", re.IGNORECASE)
"""Networks beside a fixed target that they learn from, and those of a source beside a target that is another domain."""
_COPIES = frozenset({"copy.deepcopy", "copy.copy"})
_MOVES = frozenset("cpu cuda double eval float half requires_grad_ share_memory to train".split())
_FOLLOWS = regex(r"\w*(update|sync|copy|load|soft|polyak|ema|lerp|follow|assign|set_)\w*", re.IGNORECASE)


class _Target(NamedTuple):
    """A target network: its variable, the expression that builds it, and the network of the same kind."""

    variable: Node
    made: cst.Call
    online: Node


def check(module: FileFacts) -> Iterator[Suspicion]:
    for target in _targets(module):
        mentions = _mentions(module, target)
        if mentions is None:
            continue
        called = [mention for mention in mentions if _is_called(module.tree, mention)]
        read = [mention for mention in called if not _is_dropped(module.tree, mention)]
        rest = [mention for mention in mentions if mention not in called]
        never = read and all(_leaves_as_it_is(module, target, mention) for mention in rest)
        if never and module.is_nearby(
            "gamma", "GAMMA", "discount", "DISCOUNT"
        ):  # others learn from a frozen twin on purpose
            name, online = module.code(target.variable), module.code(target.online)
            message = f"`{name}` never follows `{online}`: copy the weights over with `load_state_dict`"
            yield Suspicion(target.made, message, ((read[0], "it gives targets here"),))
        elif read and (first := _first_copy(module, target, rest)):
            name, online = module.code(target.variable), module.code(target.online)
            message = f"`{name}` starts with other weights than `{online}`: copy them over where you build it"
            related = ((first, "the first copy, after a step of training"),)
            yield Suspicion(target.made, message, related, is_note=True)


def _targets(module: FileFacts) -> Iterator[_Target]:
    """The networks of a file that are called targets, and have a twin that is not."""
    built = [pair for statement in module.tree.all(cst.Assign) for pair in _built(module, statement)]
    for variable, made in built:
        if not _TARGET.fullmatch(_last(variable)):
            continue
        if module.qualified(made.func) in _COPIES and made.args:
            source = made.args[0].value
            if dotted(source) is not None and not _TARGET.fullmatch(_last(source)):
                yield _Target(variable, made, source)
            continue
        twins = [
            other
            for other, call in built
            if module.code(call.func) == module.code(made.func)
            and module.tree.home(call) is module.tree.home(made)
            and not _TARGET.fullmatch(_last(other))
        ]
        alike = [twin for twin in twins if _last(twin) in _last(variable)] or twins
        is_network = module.kind(made) is Kind.MODULE and all(
            not _DISTILLS.fullmatch(_last(t)) for t in twins
        )
        if alike and is_network:
            yield _Target(variable, made, alike[0])


def _built(module: FileFacts, statement: cst.Assign) -> Iterator[tuple[Node, cst.Call]]:
    """The variables of an assignment, each with the call that builds what it is."""
    target, value = statement.targets[0].target, statement.value
    pairs: list[tuple[Node, Node]] = [(target, value)]
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        pairs = [
            (one.value, other.value) for one, other in zip(target.elements, value.elements, strict=False)
        ]
    for variable, made in pairs:
        while (
            isinstance(made, cst.Call)
            and isinstance(made.func, cst.Attribute)
            and called_name(made) in _MOVES
        ):
            made = made.func.value
        if isinstance(made, cst.Call) and dotted(variable) is not None:
            yield variable, made


def _last(node: Node) -> str:
    return (dotted(node) or "").rpartition(".")[2]


def _mentions(module: FileFacts, target: _Target) -> list[Node] | None:
    """What the program says of a target besides building it; None if that is not known."""
    if isinstance(target.variable, cst.Name):
        found: list[Node] = list(module.names.mentions(target.variable))
        return [mention for mention in found if mention is not target.variable]
    name = _last(target.variable)
    roots = module.names.beside(name)
    if roots is None:
        return None
    return [
        attribute
        for root in (module.tree.root, *roots)
        for attribute in module.tree.within(root, cst.Attribute)
        if attribute.attr.value == name and attribute is not target.variable
    ]


def _is_called(tree: Tree, mention: Node) -> bool:
    """Whether a network is called, by itself or by a method that does not sound as if it copied."""
    above = tree.parent[mention]
    if isinstance(above, cst.Call):
        return above.func is mention
    if not isinstance(above, cst.Attribute) or not isinstance(tree.parent[above], cst.Call):
        return False
    name, call = above.attr.value, tree.parent[above]
    is_method = isinstance(call, cst.Call) and call.func is above and bool(call.args)
    reads = name in (
        "parameters",
        "state_dict",
        "named_parameters",
        "buffers",
        "modules",
        "children",
        "apply",
    )
    return is_method and name not in _MOVES and not reads and not _FOLLOWS.fullmatch(name)


def _first_copy(module: FileFacts, target: _Target, mentions: list[Node]) -> Node | None:
    """Where a target that is built with weights of its own first gets those of its twin, if training goes before; else None."""
    if module.qualified(target.made.func) in _COPIES:
        return None
    copies = [mention for mention in mentions if _is_copied(module, target, mention)]
    others = [mention for mention in mentions if mention not in copies]
    known = all(_leaves_as_it_is(module, target, mention) or _is_saved(module, mention) for mention in others)
    late = known and all(_comes_after_backward(module, copy) for copy in copies)
    return copies[0] if copies and late else None


def _is_copied(module: FileFacts, target: _Target, mention: Node) -> bool:
    """Whether the weights of the twin go into a target here: by `load_state_dict`, by a loop over both, or by a function."""
    twin = dotted(target.online)
    statement = module.tree.statement(mention)
    head = statement.iter if isinstance(statement, cst.For) else statement
    call = next((above for above in module.tree.ancestors(mention) if isinstance(above, cst.Call)), None)
    copies = isinstance(statement, cst.For) or (
        call is not None and _FOLLOWS.fullmatch(called_name(call) or "")
    )
    return bool(copies) and any(
        dotted(node) == twin for node in module.tree.within(head, cst.Name, cst.Attribute)
    )


def _is_saved(module: FileFacts, mention: Node) -> bool:
    """Whether a mention reads the weights into a checkpoint, or takes them from one."""
    above = module.tree.parent[mention]
    return isinstance(above, cst.Attribute) and above.attr.value in ("state_dict", "load_state_dict")


def _comes_after_backward(module: FileFacts, copy: Node) -> bool:
    """Whether a backward pass of the same function goes before a copy that each call makes."""
    home = module.tree.home(copy)
    tests = (above.test for above in module.tree.ancestors(copy) if isinstance(above, cst.If))
    operations = (one for test in tests for one in module.tree.within(test, cst.BinaryOperation))
    if any(isinstance(one.operator, cst.Modulo) for one in operations):
        return False  # the count may start at a step that copies
    return any(module.tree.before(call, copy) for call in module.loops.backwards(home))


def _is_dropped(tree: Tree, mention: Node) -> bool:
    """Whether nothing reads what a network gives, as where a first pass makes its lazy layers: `_ = target(x)`."""
    for above in tree.ancestors(mention):
        if isinstance(above, cst.Assign):
            return all(is_name(target.target, "_") for target in above.targets)
        if isinstance(above, cst.Expr):
            return True
        if not isinstance(above, (cst.Attribute, cst.Call)) or isinstance(tree.parent[above], cst.Arg):
            return False
    return False


def _leaves_as_it_is(module: FileFacts, target: _Target, mention: Node) -> bool:
    """Whether a mention moves a network, freezes it, or copies the other one into it where it is built."""
    above = module.tree.parent[mention]
    call = module.tree.parent[above] if isinstance(above, cst.Attribute) and above.value is mention else None
    if not isinstance(above, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not above:
        return False
    if above.attr.value in _MOVES:
        return True
    loop = module.tree.enclosing(mention, cst.For)
    if above.attr.value == "parameters" and loop is not None and loop.iter is call:
        written = module.tree.within(loop.body, cst.AssignTarget, cst.AugAssign)
        calls = [
            one for one in module.tree.within(loop.body, cst.Call) if called_name(one) != "requires_grad_"
        ]
        return not calls and all(_last(one.target) == "requires_grad" for one in written)
    is_first = module.tree.home(mention) is module.tree.home(target.made) and not module.tree.loops(mention)
    return is_first and above.attr.value == "load_state_dict"
