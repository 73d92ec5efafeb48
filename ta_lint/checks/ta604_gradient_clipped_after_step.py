"""TA604: gradients are clipped after the step that used them, or before the backward pass that computes them."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.syntax.edits import ProposedFix, Side, move
from ta_lint.syntax.tree import argument

KEYWORDS = ("*clip*",)
AROUND = (
    "*backward",
    "step",
)

_USES_GRADIENTS = (Action.BACKWARD, Action.STEP, Action.CLEAR, Action.UNKNOWN)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for clip in module.order.events(Action.CLIP):
        region = module.order.region_by_calls(clip, Action.BACKWARD, Action.STEP)
        limit = argument(clip.call, "max_norm", 1)
        if region is None or (
            limit is not None and module.kinds.is_infinite(limit)
        ):  # it measures, and clips nothing
            continue
        paths = module.order.paths_with(region, clip)
        code = module.code(clip.call.func)
        steps = [_step_before(path, index) for path, index in paths]
        if steps and None not in steps and steps[0] is not None:
            step = steps[0]
            message = f"`{code}` comes after `{module.code(step.call)}`, which used unclipped gradients: clip before the step"
            related = ((step.place, "the step that it should come before"),)
            yield Suspicion(clip.call, message, related, _fix(module, clip, step, Side.START))
            continue
        backwards = [_backward_after(path, index) for path, index in paths]
        if backwards and None not in backwards and backwards[0] is not None:
            backward = backwards[0]
            message = f"`{code}` comes before `{module.code(backward.call)}`, which computes the gradients: clip after it"
            related = ((backward.place, "the backward pass that it should come after"),)
            yield Suspicion(clip.call, message, related, _fix(module, clip, backward, Side.END))


def _step_before(path: ExecutionPath, index: int) -> LoopEvent | None:
    """The step that used the gradients before they are clipped, if no other step uses them after."""
    before, after = _neighbours(path, index)
    used = before is not None and before.action is Action.STEP
    over = after is None or after.action in (Action.BACKWARD, Action.CLEAR)
    return before if used and over else None


def _backward_after(path: ExecutionPath, index: int) -> LoopEvent | None:
    """The first backward pass, if it comes after the clipping and the gradients before it are cleared or used."""
    before, after = _neighbours(path, index)
    actions = [event.action for event in path]
    if after is None or after.action is not Action.BACKWARD or Action.BACKWARD in actions[:index]:
        return None
    steps = Action.STEP in actions[index:] and Action.STEP not in actions[:index]
    fresh = before.action is Action.CLEAR if before is not None else Action.CLEAR in actions
    return after if steps and fresh else None


def _neighbours(path: ExecutionPath, index: int) -> tuple[LoopEvent | None, LoopEvent | None]:
    """The events around a place on a path that use or change gradients: the last before it, and the first after it."""
    before = next((event for event in reversed(path[:index]) if event.action in _USES_GRADIENTS), None)
    after = next((event for event in path[index + 1 :] if event.action in _USES_GRADIENTS), None)
    return before, after


def _fix(module: FileFacts, clip: LoopEvent, beside: LoopEvent, side: Side) -> ProposedFix | None:
    """Move the clipping; none if gradients are scaled, because they would need unscaling too."""
    scaled = beside.scaler is not None or module.order.events(Action.UNSCALE)
    edits = () if scaled else move(module.tree, module.places, clip.call, beside.place, side)
    where = "before the step" if side is Side.START else "after the backward pass"
    return ProposedFix(f"clip {where}", edits) if edits else None
