"""TA604: gradients are clipped after the step that used them, or before the backward pass that computes them."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.loops.order import Action, Event, Pass
from ta_lint.syntax.edits import Fix, Side, move

KEYWORDS = ("*clip*", "*backward", "step")

_USES_GRADIENTS = (Action.BACKWARD, Action.STEP, Action.CLEAR, Action.UNKNOWN)


def check(module: Module) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for clip in module.order.events(Action.CLIP):
        region = module.order.region(clip, Action.BACKWARD, Action.STEP)
        if region is None:
            continue
        passes = module.order.passes_with(region, clip)
        code = module.code(clip.call.func)
        steps = [_step_before(way, index) for way, index in passes]
        if steps and None not in steps and steps[0] is not None:
            step = steps[0]
            message = (
                f"`{code}` comes after `{module.code(step.call)}`, which took the gradients as they were"
            )
            related = ((step.place, "the step that it should come before"),)
            yield Suspicion(clip.call, message, related, _fix(module, clip, step, Side.START))
            continue
        backwards = [_backward_after(way, index) for way, index in passes]
        if backwards and None not in backwards and backwards[0] is not None:
            backward = backwards[0]
            message = f"`{code}` comes before `{module.code(backward.call)}`, which computes the gradients"
            related = ((backward.place, "the backward pass that it should come after"),)
            yield Suspicion(clip.call, message, related, _fix(module, clip, backward, Side.END))


def _step_before(way: Pass, index: int) -> Event | None:
    """The step that has used the gradients which are clipped, if no other uses them after that."""
    before, after = _neighbours(way, index)
    used = before is not None and before.action is Action.STEP
    over = after is None or after.action in (Action.BACKWARD, Action.CLEAR)
    return before if used and over else None


def _backward_after(way: Pass, index: int) -> Event | None:
    """The first backward pass, if it comes after the clipping and the gradients before it are cleared or used."""
    before, after = _neighbours(way, index)
    actions = [event.action for event in way]
    if after is None or after.action is not Action.BACKWARD or Action.BACKWARD in actions[:index]:
        return None
    steps = Action.STEP in actions[index:] and Action.STEP not in actions[:index]
    fresh = before.action is Action.CLEAR if before is not None else Action.CLEAR in actions
    return after if steps and fresh else None


def _neighbours(way: Pass, index: int) -> tuple[Event | None, Event | None]:
    """What used or changed gradients last before a place in a pass, and what does first after it."""
    before = next((event for event in reversed(way[:index]) if event.action in _USES_GRADIENTS), None)
    after = next((event for event in way[index + 1 :] if event.action in _USES_GRADIENTS), None)
    return before, after


def _fix(module: Module, clip: Event, beside: Event, side: Side) -> Fix | None:
    """Move the clipping; scaled gradients would have to be unscaled too."""
    scaled = beside.scaler is not None or module.order.events(Action.UNSCALE)
    edits = () if scaled else move(module.tree, module.places, clip.call, beside.place, side)
    where = "before the step" if side is Side.START else "after the backward pass"
    return Fix(f"clip {where}", edits) if edits else None
