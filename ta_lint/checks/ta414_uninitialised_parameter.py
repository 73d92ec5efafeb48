"""TA414: `nn.Parameter(torch.empty(...))` that nothing fills: it starts with arbitrary memory."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("Parameter", ("empty", "Tensor", "FloatTensor"))

# These take sizes or data; two or more arguments are sizes.
_LEGACY = frozenset({"torch.Tensor", "torch.FloatTensor"})

# Code that loops over all parameters, or loads them, may fill this one.
_ALL = frozenset("load_state_dict named_parameters parameters state_dict".split())
_FILLS = regex(
    r"(fill|normal|uniform|constant|copy|zero|zeros|ones|xavier_\w+|kaiming_\w+|trunc_normal|orthogonal|eye)_"
)
_FILLING = (
    *"fill_ normal_ uniform_ constant_ copy_ zero_ zeros_ ones_ trunc_normal_ orthogonal_ eye_".split(),
    ".xavier_",
    ".kaiming_",
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        if not module.classes.is_whole(klass) or _is_handed_on(module, klass):
            continue  # a base or an external function may fill it
        for name, assign in module.classes.assignments(klass):
            if assign.value is None or not _is_empty(module, assign.value):
                continue
            others = [value for value in module.classes.attribute(klass, name) if value is not assign.value]
            is_read = all(_is_read(module, use) for use in module.classes.mentions(name))
            if (
                not others
                and is_read
                and not _fills_all(module, module.tree.root)
                and not _may_be_filled_elsewhere(module, klass, name)
            ):
                yield Suspicion(
                    assign, f"`self.{name}` holds whatever was in memory: initialise it, as with `nn.init`"
                )


def _is_handed_on(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether a method passes the whole module to a function: `init_weights(self)`."""
    return any(
        name.value == "self"
        and isinstance(arg := module.tree.parent[name], cst.Arg)
        and isinstance(call := module.tree.parent[arg], cst.Call)
        and module.qualified(call.func) not in ("builtins.super", "builtins.isinstance")
        for name in module.tree.within(klass, cst.Name)
    )


def _is_empty(module: FileFacts, value: Node) -> bool:
    if not isinstance(value, cst.Call) or module.qualified(value.func) != "torch.nn.Parameter":
        return False
    data = argument(value, "data", 0)
    memory = module.kinds.origin(data) if data is not None else None
    if not isinstance(memory, cst.Call) or argument(memory, "device") is not None:
        return False  # the meta device has no memory
    if any(module.number(arg.value) == 0 for arg in memory.args):
        return False  # an empty parameter that marks the module's device
    called = module.qualified(memory.func)
    if called == "torch.empty":
        return isinstance(data, cst.Call)
    return called in _LEGACY and len(memory.args) > 1


def _is_read(module: FileFacts, use: cst.Attribute) -> bool:
    """Whether a use of a parameter certainly leaves its values unchanged."""
    above = module.tree.parent[use]
    match above:
        case cst.BinaryOperation() | cst.Comparison() | cst.FormattedStringExpression():
            return True
        case cst.Attribute():
            return not above.attr.value.endswith("_") and above.attr.value != "data"
        case cst.Subscript():
            return isinstance(module.tree.parent[above], (cst.Arg, cst.BinaryOperation))
        case cst.Arg():
            call = module.tree.parent[above]
            called = module.qualified(call.func) if isinstance(call, cst.Call) else None
            if called is None or not called.startswith("torch.") or called.endswith("_"):
                return False
            return not called.startswith("torch.nn.init.")  # the old `xavier_uniform` also fills in place
    return False


def _may_be_filled_elsewhere(module: FileFacts, klass: cst.ClassDef, name: str) -> bool:
    """Whether another file of the program fills a parameter of this name, or all parameters, or too many may do so."""
    uses = module.classes.mentions_elsewhere(klass, name)
    filling = module.names.beside(*_FILLING)
    if uses is None or filling is None:
        return True
    return not all(_is_read(module, use) for use in uses) or any(_fills_all(module, root) for root in filling)


def _fills_all(module: FileFacts, root: cst.Module) -> bool:
    """Whether code of a file loops over the parameters of a model and fills them."""
    tree = module.tree
    attributes = tree.within(root, cst.Attribute)
    homes = {tree.home(attribute) for attribute in attributes if attribute.attr.value in _ALL}
    return any(
        _FILLS.fullmatch(attribute.attr.value) is not None and tree.home(attribute) in homes
        for attribute in attributes
    )
