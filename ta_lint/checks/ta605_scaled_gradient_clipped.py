"""TA605: gradients are clipped while they are still scaled by a gradient scaler."""

from collections.abc import Iterator
from enum import Enum

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("*clip*",)
AROUND = (
    "*backward",
    "scale",
    "step",
)

_BREAKS = (Action.UNSCALE, Action.UNKNOWN, Action.STEP, Action.CLEAR)


class _State(Enum):
    SCALED = "scaled"
    PLAIN = "as they should be"
    APART = "nothing to say"


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for clip in module.order.events(Action.CLIP):
        if not module.order.clips_as_torch(clip) or module.order.minds_scale(clip.call.args):
            continue
        region = module.order.region(clip, Action.BACKWARD, Action.STEP)
        paths = module.order.paths_with(region, clip) if region is not None else []
        found = [_state(path, index) for path, index in paths]
        states = {state for state, _ in found}
        step = next((step for state, step in found if state is _State.SCALED), None)
        if step is None or step.scaler is None or _State.PLAIN in states or _is_disabled(module, step.scaler):
            continue
        if region is None or module.order.unscales_by_hand(region):
            continue
        scaler, optimizer = module.code(step.scaler), module.code(step.subject)
        message = (
            f"gradients are clipped before `{scaler}.unscale_({optimizer})`, so the scale decides how much"
        )
        yield Suspicion(
            clip.call, message, ((step.place, "the step that unscales"),), _fix(module, clip, step)
        )


def _state(path: ExecutionPath, index: int) -> tuple[_State, LoopEvent | None]:
    """The state of the gradients that are clipped on one path, and the scaled step that follows."""
    before = path[:index]
    last = max((i for i, event in enumerate(before) if event.action is Action.BACKWARD), default=None)
    step = next((event for event in path[index + 1 :] if event.action is Action.STEP), None)
    if last is None or path[last].scaler is None:
        return _State.APART, None
    if step is None or step.scaler is None:
        return _State.APART, None
    if any(event.action in _BREAKS for event in path[last:index]):
        return _State.PLAIN, None
    return _State.SCALED, step


def _is_disabled(module: FileFacts, scaler: Node) -> bool:
    made = module.kinds.construction(scaler)
    arguments = made.args if made is not None else ()
    return any(
        arg.keyword is not None and arg.keyword.value == "enabled" and module.boolean(arg.value) is False
        for arg in arguments
    )


def _fix(module: FileFacts, clip: LoopEvent, step: LoopEvent) -> ProposedFix | None:
    if step.via or step.scaler is None or dotted(step.subject) is None:
        return None
    code = f"{module.verbatim(step.scaler)}.unscale_({module.verbatim(step.subject)})"
    return ProposedFix(f"insert `{code}`", (insert_line_before(module.tree, clip.call, code),))
