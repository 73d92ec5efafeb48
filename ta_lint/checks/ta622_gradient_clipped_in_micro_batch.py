"""TA622: gradients are clipped after each backward pass of an accumulation, so their sum is cut repeatedly."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.loops.order import LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import LOOPS, Node

KEYWORDS = ("*clip*",)
AROUND = ("*backward", "step")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for clip in module.order.events(Action.CLIP):
        code = module.code(clip.call.func)
        if (step := _guarded_step(module, clip) or _step_after(module, clip)) is not None:
            message = (
                f"`{code}` clips the accumulated gradient after every micro-batch: clip once, before the step"
            )
            yield Suspicion(clip.call, message, ((step, "the step that uses the sum"),))
        elif (block := _accumulating(module, clip.call)) is not None:
            message = (
                f"`{code}` clips the accumulated gradient after every micro-batch: clip once, before the step"
            )
            yield Suspicion(clip.call, message, ((block, "gradients are accumulated here"),))


def _guarded_step(module: FileFacts, clip: LoopEvent) -> Node | None:
    """The step, under `if (i + 1) % k == 0`, of a loop that clips in each pass; None if it clips where it steps."""
    loop = module.order.region(clip, Action.BACKWARD, Action.STEP)
    if not isinstance(loop, LOOPS) or not _follows_a_backward(module, loop, clip):
        return None
    steps = [step for path in module.order.paths(loop) for step in path if step.action is Action.STEP]
    guards = [module.order.guard(step, loop) for step in steps]
    if None in guards or _is_conditional(module, clip, loop):
        return None
    if any(guard is not None and module.order.is_guarded(clip.place, guard) for guard in guards):
        return None
    return steps[0].place


def _follows_a_backward(module: FileFacts, loop: Loop, clip: LoopEvent) -> bool:
    paths = module.order.paths_with(loop, clip)
    return bool(paths) and all(
        any(event.action is Action.BACKWARD for event in path[:index]) for path, index in paths
    )


def _is_conditional(module: FileFacts, clip: LoopEvent, loop: Loop) -> bool:
    """Whether a condition that may hold only in some passes guards the clipping."""
    above = (one for one in module.tree.ancestors(clip.place) if isinstance(one, cst.If))
    return any(module.tree.contains(loop.body, one) and module.loops.changes(one.test, loop) for one in above)


def _step_after(module: FileFacts, clip: LoopEvent) -> Node | None:
    """The step after an inner loop over micro-batches that clips in each pass."""
    for accumulation in module.order.accumulations:
        loop = accumulation.loop
        if accumulation.guard is not loop or not module.tree.contains(loop.body, clip.place):
            continue
        if _follows_a_backward(module, loop, clip) and not _is_conditional(module, clip, loop):
            return accumulation.step.call
    return None


def _accumulating(module: FileFacts, clip: cst.Call) -> cst.With | None:
    """The `with accelerator.accumulate(model):` around a call that no `if accelerator.sync_gradients:` guards."""
    home = module.tree.home(clip)
    for above in module.tree.ancestors(clip):
        if above is home or isinstance(above, LOOPS) or _asks_for_sync(module, above):
            return None
        if isinstance(above, cst.With) and any(
            isinstance(item.item, cst.Call) and _accumulates(module, item.item) for item in above.items
        ):
            return above
    return None


def _asks_for_sync(module: FileFacts, node: Node) -> bool:
    """Whether a node is a branch that may run only for some micro-batches."""
    return isinstance(node, (cst.If, cst.IfExp)) and any(
        "sync_gradients" in name.value or "step" in name.value
        for name in module.tree.within(node.test, cst.Name)
    )


def _accumulates(module: FileFacts, call: cst.Call) -> bool:
    return called_name(call) == "accumulate" and isinstance(call.func, cst.Attribute) and bool(call.args)
