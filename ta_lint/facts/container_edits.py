"""The edits that make a module hold what is in a plain container on it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.values.containers import Container
from ta_lint.facts.values.kinds import Kind
from ta_lint.syntax.edits import ProposedFix, replace, wrap
from ta_lint.syntax.tree import Node, evaluated

_TAKE_ANY_SEQUENCE = (
    "builtins.enumerate",
    "builtins.iter",
    "builtins.len",
    "builtins.reversed",
    "builtins.zip",
)
_OF_LISTS = ("append", "extend", "insert")
_OF_DICTIONARIES = ("items", "keys", "values")

# Attributes of every module, which `nn.ModuleDict` rejects as keys.
_OF_MODULES = frozenset(
    "T_destination add_module apply bfloat16 buffers call_super_init children clear compile cpu cuda double dump_patches "
    "eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu items keys "
    "load_state_dict modules mtia named_buffers named_children named_modules named_parameters parameters pop requires_grad_ "
    "set_extra_state set_submodule share_memory state_dict to to_empty train training type update values xpu zero_grad".split()
)


def registered(module: FileFacts, attribute: Site) -> ProposedFix | None:
    """The edit where an attribute gets its container, if the file shows all that is ever in that."""
    for klass in module.classes.modules():
        for container in module.containers.of(klass):
            if module.places.span(container.statement)[:2] == (attribute.line, attribute.column):
                return _registered(container, module)
    return None


def _registered(container: Container, module: FileFacts) -> ProposedFix | None:
    """`nn.ModuleList` or `nn.ModuleDict` around the literal, if it certainly works like the container."""
    statement, value = container.statement, container.statement.value
    if (
        value is None
        or isinstance(statement, cst.AnnAssign)
        or len(statement.targets) > 1
        or len(module.classes.attribute(container.klass, container.name)) > 1
        or not _follows_super(statement, module)
        or not container.elements
        or not all(module.kind(element) is Kind.MODULE for element in container.elements)
        or not all(_serves(use, value, module) for use in _uses(container, module))
    ):
        return None
    if isinstance(value, (cst.List, cst.ListComp)):
        name = "ModuleList"
    elif isinstance(value, cst.Dict) and value.elements and all(map(_may_name_a_module, value.elements)):
        name = "ModuleDict"
    else:
        return None
    spelled = module.spelled(f"torch.nn.{name}", at=statement)
    if spelled is None:
        return None
    is_empty = isinstance(value, cst.List) and not value.elements
    edits = (replace(value, f"{spelled[0]}()"),) if is_empty else wrap(value, f"{spelled[0]}(", ")")
    return ProposedFix(f"keep them in an `nn.{name}`", edits, spelled[1])


def _follows_super(statement: Node, module: FileFacts) -> bool:
    """Whether `super().__init__()` has run; before that, a module rejects submodules."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "__init__"
        and module.tree.home(call) is module.tree.home(statement)
        for earlier in module.tree.preceding(statement)
        for call in module.tree.within(earlier, cst.Call)
    )


def _uses(container: Container, module: FileFacts) -> Iterator[cst.Attribute]:
    for attribute in module.tree.all(cst.Attribute):
        if attribute.attr.value == container.name and not module.tree.contains(
            container.statement, attribute
        ):
            yield attribute


def _serves(use: cst.Attribute, value: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether `nn.ModuleList`, or `nn.ModuleDict` for a dictionary, supports a use too."""
    above = module.tree.parent[use]
    is_dict = isinstance(value, cst.Dict)
    if isinstance(above, cst.Arg) and not above.star:
        call = module.tree.parent[above]
        return isinstance(call, cst.Call) and module.qualified(call.func) in _TAKE_ANY_SEQUENCE
    if isinstance(above, cst.Attribute):
        return above.attr.value in (_OF_DICTIONARIES if is_dict else _OF_LISTS)
    if isinstance(above, cst.Subscript):
        return not isinstance(module.tree.parent[above], (cst.AssignTarget, cst.Del))
    return isinstance(above, (cst.For, cst.CompFor)) or (isinstance(above, cst.AugAssign) and not is_dict)


def _may_name_a_module(element: cst.BaseDictElement) -> bool:
    key = element.key if isinstance(element, cst.DictElement) else None
    name = evaluated(key) if isinstance(key, cst.SimpleString) else None
    return isinstance(name, str) and name.isidentifier() and name not in _OF_MODULES
