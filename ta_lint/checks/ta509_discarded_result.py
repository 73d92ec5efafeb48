"""TA509: the result of a tensor operation that is not in-place is discarded."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, argument

_NAMES = (
    "abs add bfloat16 clamp clip contiguous cpu cuda detach div double exp expand flatten flip float half log long "
    "masked_fill mul neg permute pow relu repeat reshape roll scatter sigmoid softmax sqrt squeeze sub swapaxes t tanh to "
    "transpose type unsqueeze view"
)
_FUNCTION_NAMES = (
    "clamp clip dropout elu flatten gelu leaky_relu log_softmax masked_fill normalize permute relu reshape sigmoid silu "
    "softmax squeeze tanh transpose unsqueeze"
)

KEYWORDS = (tuple({*_NAMES.split(), *_FUNCTION_NAMES.split()}),)

_METHODS = frozenset(_NAMES.split())
_TIMES = frozenset({"Event", "perf_counter", "synchronize", "time", "timeit"})
_FUNCTIONS = regex(rf"torch\.(nn\.functional\.)?({'|'.join(_FUNCTION_NAMES.split())})")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:  # tests may only check that it runs
        return
    for statement in module.tree.all(cst.Expr):
        call = statement.value
        if not isinstance(call, cst.Call) or module.is_shown(statement):
            continue
        if module.tree.enclosing(statement, cst.Try) is not None:
            continue
        tensor = _tensor(module, call)
        if tensor is not None and not _is_made_here(module, tensor) and not _waits(module, call):
            message = (
                f"`{module.code(call)}` leaves `{module.code(tensor)}` as it is, and its result is dropped"
            )
            yield Suspicion(call, message, fix=_fix(module, call, tensor))


def _tensor(module: FileFacts, call: cst.Call) -> Node | None:
    """The tensor that a call computes from without changing it."""
    if _FUNCTIONS.fullmatch(module.qualified(call.func) or ""):
        changes = argument(call, "out") is not None or argument(call, "inplace") is not None
        return call.args[0].value if call.args and not call.args[0].star and not changes else None
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _METHODS:
        return None
    receiver = call.func.value
    is_tensor = module.kind(receiver) is Kind.TENSOR or module.gradients.of(receiver).flow is Flow.YES
    return receiver if is_tensor else None


def _is_made_here(module: FileFacts, tensor: Node) -> bool:
    """Whether a tensor is new: `torch.zeros(1).cuda()` initialises the device."""
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
        if module.qualified(tensor.func) is not None:
            return True
        tensor = tensor.func.value
    return isinstance(tensor, cst.Call)


def _waits(module: FileFacts, call: cst.Call) -> bool:
    """Whether a copy to the CPU is used to wait for the device, in a function that measures time."""
    names = {name.value for name in module.tree.within(module.tree.home(call), cst.Name)}
    return called_name(call) == "cpu" and bool(names & _TIMES)


def _fix(module: FileFacts, call: cst.Call, tensor: Node) -> ProposedFix | None:
    """Assign the result to the tensor's name; no fix for an attribute, which may be a parameter and reject tensors."""
    if not isinstance(tensor, cst.Name):
        return None
    return ProposedFix("keep the result", wrap(call, f"{module.code(tensor)} = ", ""))
