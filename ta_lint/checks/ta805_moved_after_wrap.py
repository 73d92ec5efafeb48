"""TA805: a model is moved or converted inside `DistributedDataParallel`, which keeps reducing the old gradients."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import is_backward, names_training
from ta_lint.facts.torch.wrappers import ParallelWrapper, WrapCall
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import dotted

_MOVES = frozenset({"to", "cuda", "cpu", "xpu", "half", "bfloat16", "double"})
_DTYPES = frozenset("torch." + name for name in "bfloat16 double float float16 float32 float64 half".split())

KEYWORDS = (("bfloat16", "cpu", "cuda", "double", "half", "to", "xpu"),)
AROUND = ("DistributedDataParallel",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or called_name(call) not in _MOVES or _keeps_place(call):
            continue
        wrapping = module.wrappers.around(call.func.value)
        if wrapping is None or wrapping.wrapper is not ParallelWrapper.REPLICATED:
            continue
        if _runs_before(call, wrapping, module) or _was_moved_so(call, wrapping, module):
            continue
        if _trains_afterwards(call, module):
            what = f"`.{called_name(call)}()`"
            message = (
                f"{what} after wrapping: `DistributedDataParallel` reduces the old parameters; do it before"
            )
            yield Suspicion(call, message, related=((wrapping.call, "the model is wrapped here"),))


def _keeps_place(call: cst.Call) -> bool:
    """Whether a call of `to` only changes the memory layout."""
    return called_name(call) == "to" and all(
        (arg.keyword is not None and arg.keyword.value in ("memory_format", "non_blocking"))
        or (dotted(arg.value) or "").endswith(("channels_last", "channels_last_3d", "contiguous_format"))
        for arg in call.args
    )


def _names_device(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call moves to a device without converting: `cuda()`, `to(device)`."""
    if called_name(call) in ("cuda", "xpu"):
        return True
    return called_name(call) == "to" and not any(module.qualified(arg.value) in _DTYPES for arg in call.args)


def _runs_before(call: cst.Call, wrapping: WrapCall, module: FileFacts) -> bool:
    """Whether a method may move the model before another wraps it: only wrapping in `__init__` surely is first."""
    tree = module.tree
    wraps = tree.home(wrapping.call)
    if wraps is tree.home(call) or not isinstance(tree.home(wraps), cst.ClassDef):
        return False
    return not (isinstance(wraps, cst.FunctionDef) and wraps.name.value == "__init__")


def _was_moved_so(call: cst.Call, wrapping: WrapCall, module: FileFacts) -> bool:
    """Whether the model was already moved to a device, most likely the same one, before it was wrapped."""
    if not _names_device(call, module):
        return False
    tree, names = module.tree, {dotted(wrapping.model), _receiver(call)} - {None}
    for other in tree.own(tree.home(wrapping.call), cst.Call):
        if other is call or not _names_device(other, module) or not isinstance(other.func, cst.Attribute):
            continue
        statement = tree.statement(other)
        made = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else []
        moved = {_receiver(other), *(dotted(target) for target in made)}
        if tree.contains(wrapping.call, other) or (tree.before(other, wrapping.call) and moved & names):
            return True
    return False


def _trains_afterwards(call: cst.Call, module: FileFacts) -> bool:
    """Whether training follows the move: a model that is only evaluated or saved can be moved."""
    tree, home = module.tree, module.tree.home(call)
    loops = tree.loops(call)
    if any(module.loops.trains(loop.body) for loop in loops):
        return True
    if isinstance(home, cst.FunctionDef) and home.name.value == "__init__":
        return True
    name = _receiver(call) or _bound_to(call, module)
    for later in tree.own(home, cst.Call):
        if not tree.before(call, later) or tree.contains(later, call):
            continue
        if is_backward(later):
            return True
        callee = module.calls.callee(later)
        handed = any(dotted(arg.value) == name for arg in later.args) or (name or "").startswith("self.")
        if handed and callee is not None and module.loops.trains(callee.body):
            return True
        if handed and callee is None and names_training(later):
            return True
    return False


def _bound_to(call: cst.Call, module: FileFacts) -> str | None:
    """`ddp` for `ddp = DistributedDataParallel(model).cuda()`."""
    statement = module.tree.statement(call)
    return dotted(statement.targets[0].target) if isinstance(statement, cst.Assign) else None


def _receiver(call: cst.Call) -> str | None:
    """The variable or attribute whose method is called, as the file spells it."""
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None
