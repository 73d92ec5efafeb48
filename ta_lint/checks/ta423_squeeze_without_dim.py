"""TA423: `squeeze()` without a dimension also drops the batch dimension of a batch with one sample."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("forward", "squeeze")

_NUMBERS = frozenset({"item", "tolist"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        forward = module.classes.methods(klass).get("forward")
        for call in module.tree.own(forward, cst.Call) if forward is not None else []:
            receiver = _squeezed(call, module)
            if receiver is not None and _has_batch(receiver, module) and not _is_harmless(call, module):
                yield Suspicion(
                    call, f"`{module.code(call)}` also drops the batch dimension of a batch of one"
                )


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
