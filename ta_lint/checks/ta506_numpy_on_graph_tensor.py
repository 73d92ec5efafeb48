"""TA506: a tensor that requires a gradient is converted to an array, which raises."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.syntax.edits import Edit, ProposedFix, call_method, replace

KEYWORDS = ("numpy",)

_ARRAYS = ("numpy.array", "numpy.asarray")
_MOVES = frozenset({"cpu", "cuda", "float", "double", "to"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        edits: tuple[Edit, ...]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "numpy" and not call.args:
            tensor = call.func.value
            edits = (_detach(call.func),)
        elif len(call.args) == 1 and module.qualified(call.func) in _ARRAYS:
            tensor = call.args[0].value
            edits = call_method(tensor, ".detach()")
        else:
            continue
        if module.gradients.of(tensor).flow is Flow.YES and module.gradients.is_on(call):
            message = f"`{module.code(call)}` raises, as `{module.code(tensor)}` requires a gradient: call `detach()` first"
            yield Suspicion(call, message, fix=ProposedFix("detach it first", edits))


def _detach(method: cst.Attribute) -> Edit:
    """`.detach()` before a method and before a preceding move: `x.detach().cpu().numpy()`."""
    moved = method.value
    while (
        isinstance(moved, cst.Call)
        and isinstance(moved.func, cst.Attribute)
        and moved.func.attr.value in _MOVES
    ):
        method, moved = moved.func, moved.func.value
    return replace(method.attr, f"detach().{method.attr.value}")
