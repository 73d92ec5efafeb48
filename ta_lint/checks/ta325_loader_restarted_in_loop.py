"""TA325: each training step restarts its loader for one batch."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall

KEYWORDS = ("next",)
AROUND = (("*backward", "step"),)

_ITERABLE = "torch.utils.data.IterableDataset"


def check(module: FileFacts) -> Iterator[Suspicion]:
    for taking in module.tree.all(cst.Call):
        if called_name(taking) != "next" or not taking.args:
            continue
        loop = next(iter(module.tree.loops(taking)), None)
        begun = _begun(taking, loop, module) if loop is not None else None
        if loop is None or begun is None or not _always_runs(begun, loop, module):
            continue
        harm = _harm(begun, module)
        if harm is not None and module.loops.trains_each_pass(loop):
            message = (
                f"`{module.code(begun)}` is new in each step, so {harm}: create it once, before the loop"
            )
            yield Suspicion(begun, message, ((loop, "the training loop"),))


def _begun(taking: cst.Call, loop: cst.For | cst.While, module: FileFacts) -> cst.Call | None:
    """The call that creates an iterator from which a pass of the loop takes only one item by `next`."""
    given = taking.args[0].value
    begun = module.kinds.origin(given)
    if not isinstance(begun, cst.Call) or module.tree.loops(begun)[:1] != [loop]:
        return None
    mentions = [
        name for name in module.tree.within(loop, cst.Name) if name.value == getattr(given, "value", None)
    ]
    return begun if begun is given or len(mentions) == 2 else None


def _harm(begun: cst.Call, module: FileFacts) -> str | None:
    """What a new iterator for each batch does; None if the call makes none of a loader, or one that may go on for ever."""
    if called_name(begun) != "iter" or len(begun.args) != 1:
        restarts = _goes_over_what_it_is_given(module.calls.callee(begun), module)
        return "no epoch ends" if restarts else None
    loaders = module.loaders.behind(begun.args[0].value)
    if not loaders or not all(_has_epochs(loader, module) for loader in loaders):
        return None
    if all(module.loaders.shuffles(loader) is False for loader in loaders):
        return "each trains on the first batch"
    return "workers restart, and no epoch ends"


def _goes_over_what_it_is_given(function: cst.FunctionDef | None, module: FileFacts) -> bool:
    """Whether a function is a generator that starts with `iter` of a parameter, or iterates over one."""
    if function is None or not module.tree.own(function, cst.Yield):
        return False
    over = [loop.iter for loop in module.tree.own(function, cst.For)]
    begun = [
        call for call in module.tree.own(function, cst.Call) if called_name(call) == "iter" and call.args
    ]
    over += [call.args[0].value for call in begun]
    return any(isinstance(module.kinds.origin(value), cst.Param) for value in over)


def _always_runs(restarted: cst.Call, loop: cst.For | cst.While, module: FileFacts) -> bool:
    """Whether each pass of a loop runs a call: no condition, and no handler of an exception, is around it."""
    for above in module.tree.ancestors(restarted):
        if above is loop:
            return True
        if isinstance(above, (cst.If, cst.IfExp, cst.ExceptHandler, cst.Lambda, cst.BooleanOperation)):
            return False
    return False


def _has_epochs(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loader goes through a dataset with an end: no sampler that may be endless, and no stream."""
    if loader.spreads or loader.has_sampler:
        return False
    klass = module.loaders.dataset_class(loader)
    return klass is None or not module.classes.derives(klass, _ITERABLE)
