"""TA604: gradients are clipped after the step that used them, or before they are computed."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import LoopHistory, Refutation, Run, Said, Suspicion
from ta_runtime.probes.places import Place

FEW = 2
"""Useless clippings needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for place in dict.fromkeys(
        place for history in run.loop.histories for place in history.places(Action.CLIP)
    ):
        counts = [_counted(history, place) for history in run.loop.histories]
        late, used = sum(late for late, _ in counts), sum(used for _, used in counts)
        if late >= FEW and not used:
            message = "clipping has no effect at this place: clip between the backward pass and the step"
            yield Suspicion(place, message, {"clippings": late, "before a step": 0})
        elif (
            used >= FEW and used >= late
        ):  # of two optimizers with the same parameters one may have stepped before
            because = f"{used} clippings come between a backward pass and its step"
            yield Refutation(place, because, {"clippings before a step": used})


def _counted(history: LoopHistory, place: Place) -> tuple[int, int]:
    """How often one optimizer's gradients were clipped at a place before all backward passes for a step, and after one."""
    late = used = 0
    for pattern, times in history.patterns.items():
        actions = [event.action for event, _ in pattern]
        if Action.BACKWARD not in actions or pattern == history.first:
            continue
        computed = actions.index(Action.BACKWARD)
        clips = [
            index
            for index, (event, _) in enumerate(pattern)
            if event.place == place and event.action is Action.CLIP
        ]
        late += times * any(index < computed for index in clips)
        used += times * any(index > computed for index in clips)
    return late, used
