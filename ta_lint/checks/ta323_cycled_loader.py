"""TA323: `itertools.cycle` repeats the batches of the first epoch forever."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node

KEYWORDS = ("cycle",)
AROUND = ("DataLoader", ("*backward", "step"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    for cycle in module.calls_to("itertools.cycle"):
        loaders = module.loaders.behind(cycle.args[0].value) if cycle.args else []
        if not loaders or not all(one.has_sampler or module.loaders.shuffles(one) for one in loaders):
            continue
        loop = _trained_over(cycle, module)
        if loop is not None:
            message = "`cycle` replays the first epoch from memory and never shuffles again: restart the loader instead"
            yield Suspicion(cycle, message, ((loop, "the training loop"),))


def _trained_over(cycle: cst.Call, module: FileFacts) -> cst.For | cst.While | None:
    """The training loop that takes its batches from a cycle, which is made outside of it."""
    loop: cst.For | cst.While
    for loop in module.tree.all(cst.For, cst.While):
        if not any(_leads_to(taken, cycle, module) for taken in _taken(loop, module)):
            continue
        if _outlives(loop, cycle, module) and module.loops.trains_each_pass(loop):
            return loop
    return None


def _taken(loop: cst.For | cst.While, module: FileFacts) -> list[Node]:
    """The iterables of a loop: what it iterates over, calls `next` on, or passes to a function of the project."""
    calls = [call for call in module.tree.own(loop, cst.Call) if module.tree.loops(call)[:1] == [loop]]
    taken: list[Node] = [call.args[0].value for call in calls if called_name(call) == "next" and call.args]
    taken += [arg.value for call in calls if module.calls.callee(call) is not None for arg in call.args]
    return [*taken, loop.iter] if isinstance(loop, cst.For) else taken


def _outlives(loop: Node, cycle: cst.Call, module: FileFacts) -> bool:
    """Whether no outer loop creates the cycle again in each pass, for example in each epoch."""
    return not any(module.tree.contains(outer, cycle) for outer in module.tree.loops(loop))


def _leads_to(taken: Node, cycle: cst.Call, module: FileFacts) -> bool:
    """Whether a loop iterates over the cycle, or calls `next` on it: through `iter`, `enumerate`, `islice`, `tqdm`."""
    origin = module.kinds.origin(taken)
    while isinstance(origin, cst.Call) and origin is not cycle and origin.args:
        if called_name(origin) not in ("iter", "enumerate", "islice", "tqdm"):
            return False
        origin = module.kinds.origin(origin.args[0].value)
    return origin is cycle
