"""TA509: the result of a tensor operation that is not in-place is discarded."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, argument, spreads

_NAMES = (
    "abs add bfloat16 clamp clamp_max clamp_min clip contiguous cpu cuda detach div double exp expand flatten flip float "
    "half index_add index_copy index_fill log long masked_fill masked_scatter mul neg permute pow relu repeat reshape roll "
    "scatter scatter_add sigmoid softmax sqrt squeeze sub swapaxes t tanh to transpose tril triu type unsqueeze view"
)
_FUNCTION_NAMES = (
    "clamp clip dropout elu flatten gelu leaky_relu log_softmax masked_fill normalize permute relu reshape sigmoid silu "
    "softmax squeeze tanh transpose unsqueeze"
)

KEYWORDS = (tuple({*_NAMES.split(), *_FUNCTION_NAMES.split()}),)

# The place of `inplace` among the arguments of a function.
_INPLACE = {"dropout": 3, "elu": 2, "leaky_relu": 2, "relu": 1, "silu": 1}

_METHODS = frozenset(_NAMES.split())
_TIMES = frozenset({"Event", "perf_counter", "synchronize", "time", "timeit"})
_FUNCTIONS = regex(rf"torch\.(nn\.functional\.)?({'|'.join(_FUNCTION_NAMES.split())})")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Expr):
        call = statement.value
        if not isinstance(call, cst.Call) or module.is_shown(statement):
            continue
        if module.tree.enclosing(statement, cst.Try) is not None:
            continue
        tensor = _tensor(module, call)
        if tensor is not None and not _is_made_here(module, tensor) and not _waits(module, call):
            message = f"`{module.code(call)}` leaves `{module.code(tensor)}` unchanged: assign its result"
            yield Suspicion(call, message, fix=_fix(module, call, tensor))


def _tensor(module: FileFacts, call: cst.Call) -> Node | None:
    """The tensor that a call computes from without changing it."""
    if _FUNCTIONS.fullmatch(module.qualified(call.func) or ""):
        given = call.args[0].value if call.args and not call.args[0].star else None
        return given if not _may_change(module, call) else None
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _METHODS:
        return None
    receiver = call.func.value
    is_tensor = (
        module.kind(receiver) in (Kind.TENSOR, Kind.PARAMETER)
        or module.gradients.of(receiver).flow is Flow.YES
    )
    return receiver if is_tensor else None


def _may_change(module: FileFacts, call: cst.Call) -> bool:
    """Whether a function may write to its argument: to `out`, or in place, if that is not certainly off."""
    name = (module.qualified(call.func) or "").rpartition(".")[2]
    in_place = argument(call, "inplace", _INPLACE.get(name))
    is_off = in_place is None or module.boolean(in_place) is False
    return argument(call, "out") is not None or spreads(call) or not is_off


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
