"""TA413: a tensor on `self` that is neither parameter nor buffer: `.to(device)` and `state_dict()` skip it."""

from collections.abc import Iterator
from enum import StrEnum

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace, wrap
from ta_lint.syntax.tree import Node, argument, is_name

_NAMES = "arange bernoulli eye from_numpy full linspace logspace normal ones rand randint randn randperm tensor zeros"
_ANY = _NAMES.replace(" ", "|")

KEYWORDS = ("__init__", ("Parameter", *_NAMES.split()))

_FACTORY = regex(rf"torch\.(?:{_ANY})")

# Uses of a tensor by code that handles its device itself, or only needs its values.
_PLACES = frozenset(
    "cpu cuda data detach device grad is_leaf item numpy requires_grad requires_grad_ to tolist type type_as".split()
)
_VIEWS = frozenset(
    "contiguous exp expand expand_as flatten float long permute repeat reshape squeeze sqrt t transpose unsqueeze view".split()
)


# Methods by which a class handles moves itself.
_MOVES = frozenset({"_apply", "cuda", "to"})


class Fate(StrEnum):
    """How an expression uses a tensor."""

    CALCULATED = "calculated"  # with another operand, which decides the device
    PLACED = "placed"  # code handles its device or gradient
    GONE = "gone"  # passed to code that may do anything
    READ = "read"


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for klass in module.classes.modules():
        if _MOVES & module.classes.methods(klass).keys():
            continue
        for name, assign in module.classes.assignments(klass):
            value = assign.value
            if value is None or not _is_at_start(module, assign) or not _makes_tensor(module, value):
                continue
            if module.classes.attribute(klass, name) != [value]:
                continue
            fates = _fates(module, klass, name)
            if Fate.PLACED in fates:
                continue
            if _learns(module, value) and Fate.GONE not in fates:
                message = f"`self.{name}` requires gradients and is no parameter, so no optimizer gets it"
                yield Suspicion(assign, message, fix=_as_parameter(module, value))
            elif Fate.CALCULATED in fates and _is_constant(module, value):
                message = (
                    f"`self.{name}` is neither parameter nor buffer: `.to()` and `state_dict()` pass it by"
                )
                yield Suspicion(assign, message, fix=_as_buffer(module, assign, name))


def _is_at_start(module: FileFacts, assign: Node) -> bool:
    home = module.tree.home(assign)
    return isinstance(home, cst.FunctionDef) and home.name.value == "__init__"


def _makes_tensor(module: FileFacts, value: Node) -> bool:
    """Whether a part of a value is a new tensor or parameter."""
    return any(
        _is_new_parameter(module, call) or _FACTORY.fullmatch(module.qualified(call.func) or "")
        for call in module.tree.within(value, cst.Call)
    )


def _learns(module: FileFacts, value: Node) -> bool:
    """Whether a tensor requires gradients: by its factory, or because it is computed from a new parameter."""
    if isinstance(value, cst.BinaryOperation):
        return any(_is_new_parameter(module, side) for side in (value.left, value.right))
    if not isinstance(value, cst.Call) or not _FACTORY.fullmatch(module.qualified(value.func) or ""):
        return False
    grad = argument(value, "requires_grad")
    return grad is not None and module.boolean(grad) is True


def _is_new_parameter(module: FileFacts, node: Node) -> bool:
    return isinstance(node, cst.Call) and module.qualified(node.func) == "torch.nn.Parameter"


def _is_constant(module: FileFacts, value: Node) -> bool:
    """Whether a value is computed only from torch factories, without a device, and is not a scalar."""
    if module.kind(value) is not Kind.TENSOR or _has_new_parameter(module, value):
        return False
    if any(
        name.value in ("cuda", "device", "to", "new", "requires_grad")
        for name in module.tree.within(value, cst.Name)
    ):
        return False
    made = [
        call
        for call in module.tree.within(value, cst.Call)
        if _FACTORY.fullmatch(module.qualified(call.func) or "")
    ]
    return bool(made) and not any(_may_be_scalar(module, call) for call in made)


def _has_new_parameter(module: FileFacts, value: Node) -> bool:
    """Whether a parameter is created and lost on the way, as in TA412."""
    return any(_is_new_parameter(module, call) for call in module.tree.within(value, cst.Call))


def _may_be_scalar(module: FileFacts, call: cst.Call) -> bool:
    """Whether a tensor may have no dimensions: a scalar on the CPU combines with tensors on any device."""
    if module.qualified(call.func) != "torch.tensor" or not call.args:
        return False
    return not isinstance(module.kinds.origin(call.args[0].value), (cst.List, cst.ListComp, cst.Tuple))


def _fates(module: FileFacts, klass: cst.ClassDef, name: str) -> set[Fate]:
    """The ways in which the file uses the tensor."""
    fates = set()
    for mention in module.classes.mentions(name):
        on_self = is_name(mention.value, "self")
        other = module.tree.enclosing(mention, cst.ClassDef)
        if on_self and (other is None or not module.classes.related(other, klass)):
            continue  # belongs to another class
        fate = _fate(module, mention)
        if on_self or fate in (Fate.PLACED, Fate.GONE):
            fates.add(fate)
    return fates


def _fate(module: FileFacts, node: Node) -> Fate:
    """How an expression uses a tensor, looking through views."""
    while True:
        above = module.tree.parent[node]
        match above:
            case cst.BinaryOperation():
                return Fate.CALCULATED
            case cst.Subscript() if above.value is node:
                node = above
            case cst.UnaryOperation():
                node = above
            case cst.Attribute() if above.attr.value in _VIEWS and isinstance(
                module.tree.parent[above], cst.Call
            ):
                node = module.tree.parent[above]
            case cst.Attribute():
                return Fate.PLACED if above.attr.value in _PLACES else Fate.READ
            case cst.Arg():
                call = module.tree.parent[above]
                called = module.qualified(call.func) if isinstance(call, cst.Call) else None
                if called is None or not called.startswith("torch.") or called.startswith("torch.optim."):
                    return Fate.GONE
                return Fate.CALCULATED if isinstance(call, cst.Call) and len(call.args) > 1 else Fate.READ
            case cst.Element() | cst.Return() | cst.Yield():
                return Fate.GONE
            case _:
                return Fate.READ


def _as_parameter(module: FileFacts, value: cst.BaseExpression) -> ProposedFix | None:
    """`nn.Parameter(torch.zeros(4, requires_grad=True))`; no fix if the value already contains a parameter."""
    spelled = module.spelled("torch.nn.Parameter", value)
    if spelled is None or not isinstance(value, cst.Call):
        return None
    code, imports = spelled
    return ProposedFix("make it a parameter", wrap(value, f"{code}(", ")"), imports)


def _as_buffer(module: FileFacts, assign: cst.Assign | cst.AnnAssign, name: str) -> ProposedFix | None:
    if assign.value is None:
        return None
    code = f'self.register_buffer("{name}", {module.verbatim(assign.value)}, persistent=False)'
    return ProposedFix("make it a buffer", (replace(assign, code),))
