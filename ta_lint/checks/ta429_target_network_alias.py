"""TA429: a target network is the same object as the network that it should lag behind, so updates change nothing."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("load_state_dict", "zip", "*update*", "*copy*", "*sync*"),)

# Functions of other files that move one model towards another.
_UPDATES = regex(
    r"_?((soft|hard|polyak|ema|momentum)_?(target_?)?(update|copy)\w*|update_(target|ema|average|momentum)\w*|"
    r"(sync|copy)_(target|params|parameters|weights)\w*|update_moving_average)",
    re.IGNORECASE,
)
_DEPTH = 6


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for call in module.tree.all(cst.Call):
        for target, source in _updated(module, call):
            alias = _alias(module, target, source)
            if alias is not None and alias not in reported:
                reported.add(alias)
                message = (
                    f"`{module.code(target)}` is `{module.code(source)}` itself, "
                    f"so `{module.code(call)}` changes nothing: use `deepcopy`"
                )
                yield Suspicion(
                    module.tree.statement(alias),
                    message,
                    related=((call, "the update"),),
                    fix=_fix(module, alias),
                )


def _updated(module: FileFacts, call: cst.Call) -> Iterator[tuple[Node, Node]]:
    """The models of a call that copies the second into the first, or loops over both in parallel."""
    given = [arg.value for arg in call.args if not arg.star]
    name = called_name(call)
    if name == "load_state_dict" and isinstance(call.func, cst.Attribute) and given:
        source = _receiver(given[0], "state_dict")
        if source is not None:
            yield call.func.value, source
    elif name == "zip" and len(given) >= 2:
        first, second = (
            _receiver(one, "parameters") or _receiver(one, "named_parameters") or _receiver(one, "buffers")
            for one in given[:2]
        )
        if first is not None and second is not None:
            yield first, second
    elif name is not None and _UPDATES.fullmatch(name):
        models = [
            value
            for value in given
            if dotted(value) is not None and module.calls_in_loop.acts_as_model(value)
        ]
        if len(models) == 2:
            yield models[0], models[1]


def _receiver(value: Node, name: str) -> Node | None:
    """`model` in `model.state_dict()`."""
    if (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == name
    ):
        return value.func.value
    return None


def _alias(module: FileFacts, target: Node, source: Node) -> Node | None:
    """The expression that certainly makes two variables the same object, if there is one."""
    if dotted(target) is None or dotted(source) is None or dotted(target) == dotted(source):
        return None
    end = _end(module, target)
    if end is not _end(module, source) or not isinstance(end, (cst.Call, cst.Param)):
        return None
    for variable in (target, source):
        value = _value(module, variable)
        if value is None or value is end or _is_part_of_another(module, value):
            continue
        if _comes_first(module, value, variable):
            return value
    return None


def _is_part_of_another(module: FileFacts, value: Node) -> bool:
    """Whether an attribute is that of an object made here, which has a network of its own: `copy.blocks`."""
    owner = value.value if isinstance(value, cst.Attribute) else None
    return isinstance(owner, cst.Name) and isinstance(module.kinds.origin(owner), cst.Call)


def _end(module: FileFacts, node: Node) -> Node:
    """The place where an object is created or passed in, through names and methods that return their object."""
    node = module.kinds.origin(node)
    for _ in range(_DEPTH):
        inner = _fluent(module, node)
        if inner is None:
            return node
        node = module.kinds.origin(inner)
    return node


def _fluent(module: FileFacts, node: Node) -> Node | None:
    """`model` in `model.to(device)`; None for a function of a model, which may copy it."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    inner = module.kinds.handed_on(node)
    return inner if inner is node.func.value else None


def _value(module: FileFacts, variable: Node) -> Node | None:
    """The value of a variable, if it is another variable, moved or not."""
    if isinstance(variable, cst.Name):
        binding = module.names.definition(variable)
        value: Node | None = binding.value if binding is not None and binding.how == "assign" else None
    else:
        klass = module.tree.enclosing(variable, cst.ClassDef)
        attribute = variable.attr.value if isinstance(variable, cst.Attribute) else ""
        values = module.classes.attribute(klass, attribute) if klass is not None else []
        value = values[0] if len(values) == 1 and dotted(variable) == f"self.{attribute}" else None
    inner = value
    while inner is not None and (moved := _fluent(module, inner)) is not None:
        inner = moved
    return value if inner is not None and dotted(inner) is not None else None


def _comes_first(module: FileFacts, value: Node, use: Node) -> bool:
    """Whether a variable is bound before its use, but not by the previous pass: `old = new` at the end of a loop."""
    tree = module.tree
    home = tree.home(value)
    if home is not tree.home(use):
        return (isinstance(home, cst.FunctionDef) and home.name.value == "__init__") or isinstance(
            home, cst.Module
        )
    return tree.before(value, use)


def _fix(module: FileFacts, alias: Node) -> ProposedFix | None:
    spelled = module.spelled("copy.deepcopy", alias)
    if spelled is None:
        return None
    code, imports = spelled
    return ProposedFix("copy the network", wrap(alias, f"{code}(", ")"), imports)
