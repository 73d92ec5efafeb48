"""TA610: the batches left over after the last full accumulation of an epoch are never stepped."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import Accumulation
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain

KEYWORDS = ("*backward", "step", "%", "enumerate")

_LOADER = regex(r"loader|batches|iterator|data|dl$|_iter$", re.IGNORECASE)

# Names of iterables that have no epoch or are cut to fit.
_NO_EPOCH = frozenset("chunk count cycle infinite islice range repeat split tensor_split zip".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for accumulation in module.order.accumulations:
        guard, count = accumulation.guard, module.code(accumulation.count)
        if not isinstance(guard, cst.If) or count == "1" or accumulation.flushes:
            continue
        if _counts_an_epoch(module, accumulation) and not _is_flushed(module, accumulation):
            message = f"the last batches of an epoch, if fewer than `{count}`, get no step of their own: step after the loop too"
            related = (
                (accumulation.loop, "counts from the start in each epoch"),
                (accumulation.step.call, "the step that they miss"),
            )
            yield Suspicion(guard.test, message, related)


def _counts_an_epoch(module: FileFacts, accumulation: Accumulation) -> bool:
    """Whether the counter restarts in each epoch: `for i, batch in enumerate(loader)`."""
    loop, tree = accumulation.loop, module.tree
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Tuple):
        return False
    calls = {called_name(call) for call in tree.within(loop.iter, cst.Call)}
    names = tree.within(loop.iter, cst.Name)
    if "enumerate" not in calls or calls & _NO_EPOCH or not any(_LOADER.search(name.value) for name in names):
        return False
    index = loop.target.elements[0].value
    counted = [name.value for name in tree.within(accumulation.counter, cst.Name)]
    return isinstance(index, cst.Name) and counted == [index.value]


def _is_flushed(module: FileFacts, accumulation: Accumulation) -> bool:
    """Whether the function steps again after the loop, or leaves the loop at the end of a full accumulation."""
    tree, loop = module.tree, accumulation.loop
    count = module.code(accumulation.count)
    leaves = [branch for branch in tree.own(loop.body, cst.If) if tree.own(branch.body, cst.Break)]
    return any(count in plain(branch.test) for branch in leaves) or any(
        tree.home(event.call) is tree.home(loop)
        and tree.before(loop, event.call)
        and not tree.contains(loop.body, event.call)
        for action in (Action.STEP, Action.UNKNOWN)
        for event in module.order.events(action)
    )
