"""TA604: gradients are clipped after the step that used them, or before they are computed."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = ("*clip*",)
AROUND = ("*backward", "step")
fix = stepping.clip_between

FEW = 2
"""Useless clippings needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for place in stepping.everywhere(run, Action.CLIP):
        found = _clipped(run, place)
        late = found[Condition.USED] + found[Condition.EMPTY]
        used = found[Condition.FRESH] + found[Condition.STALE]
        if late >= FEW and not used and late > found[Condition.UNKNOWN]:
            message = "clipping has no effect at this place: clip between the backward pass and the step"
            yield Suspicion(place, message, {"clippings": late, "before a step": 0})
        elif (
            used >= FEW and used >= late
        ):  # of two optimizers of the same parameters, one may have stepped before
            because = f"{used} clippings come between a backward pass and its step"
            yield Refutation(place, because, {"clippings before a step": used})


def _clipped(run: Run, place: Place) -> Counter[Condition]:
    """What the clippings at a place found, if a step uses it or what is computed after it."""
    found: Counter[Condition] = Counter()
    for history in run.loop.histories:
        for pattern, times in history.patterns.items():
            for index, (event, count) in enumerate(pattern):
                is_new = event.gradients in (Condition.FRESH, Condition.STALE)
                is_followed = is_new or any(later.action is Action.BACKWARD for later, _ in pattern[index:])
                if (
                    event.action is Action.CLIP
                    and event.place == place
                    and is_followed
                    and pattern != history.first
                ):
                    found[event.gradients] += times * count
    return found
