"""TA423: `squeeze()` without a dimension also drops the batch dimension of a batch with one sample."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.tree import Node, argument, attribute_of_self

KEYWORDS = ("squeeze", ("forward", "cat", "stack", "Module"))

_NUMBERS = frozenset({"item", "tolist"})

# Their result has a dimension for the tensors that they join, or the batch dimension of these.
_JOINS = frozenset({"torch.stack", "torch.cat", "torch.vstack"})

# Methods whose result has the dimensions of the tensor.
_KEEPS_BATCH = frozenset(
    {"clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "half", "long", "to"}
)

_DEPTH = 8


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        receiver = _squeezed(call, module)
        if receiver is None:
            continue
        in_forward = _is_in_forward(call, module)
        if not (in_forward or _is_of_a_batch(receiver, module)):
            continue
        if _has_batch(receiver, module) and not _is_harmless(call, module):
            yield Suspicion(
                call,
                f"`{module.code(call)}` also drops the batch dimension of a batch of one: name the `dim`",
                in_tests=in_forward,
            )


def _is_in_forward(call: cst.Call, module: FileFacts) -> bool:
    home = module.tree.home(call)
    if not isinstance(home, cst.FunctionDef) or home.name.value != "forward":
        return False
    klass = module.tree.home(home)
    return isinstance(klass, cst.ClassDef) and module.classes.derives(klass, "torch.nn.Module")


def _is_of_a_batch(receiver: Node, module: FileFacts) -> bool:
    """Whether a tensor is the output of a layer of the class, or joins several tensors, at once or step by step."""
    for _ in range(_DEPTH):
        receiver = module.kinds.origin(receiver)
        if not isinstance(receiver, cst.Call):
            return False
        if module.qualified(receiver.func) in _JOINS:
            return True
        if not isinstance(receiver.func, cst.Attribute):
            return False
        if attribute_of_self(receiver.func) is not None and module.kind(receiver.func) is Kind.MODULE:
            return True
        if receiver.func.attr.value not in _KEEPS_BATCH:
            return False
        receiver = receiver.func.value
    return False


def _squeezed(call: cst.Call, module: FileFacts) -> Node | None:
    """The tensor that is squeezed in all dimensions."""
    if module.qualified(call.func) == "torch.squeeze":
        return argument(call, "input", 0) if len(call.args) == 1 else None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "squeeze" and not call.args:
        return call.func.value
    return None


def _has_batch(node: Node, module: FileFacts) -> bool:
    """Whether the tensor may have a batch dimension: it is neither a single sample nor a parameter."""
    value = module.kinds.origin(node)
    if isinstance(node, cst.Attribute) or isinstance(value, cst.Attribute):
        return False  # a buffer or parameter of the module
    return not any(
        isinstance(item.slice, cst.Index)
        for index in module.tree.own(value, cst.Subscript)
        for item in index.slice
    )


def _is_harmless(call: cst.Call, module: FileFacts) -> bool:
    """Whether the result is read as a number, or combined only with other squeezed tensors."""
    above = module.tree.parent[call]
    if isinstance(above, cst.Attribute):
        return above.attr.value in _NUMBERS
    around = module.tree.parent[above] if isinstance(above, cst.Arg) else None
    return (
        isinstance(around, cst.Call)
        and len(around.args) > 1
        and all(isinstance(a.value, cst.Call) and _squeezed(a.value, module) is not None for a in around.args)
    )
