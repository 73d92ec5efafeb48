"""TA622: gradients are clipped after several backward passes of one step, so their sum is cut repeatedly."""

from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, StepPattern
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = ("*clip*",)
AROUND = ("*backward", "step")

FEW = 2
"""Steps needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for place in stepping.everywhere(run, Action.CLIP):
        often = once = alone = 0
        for history in run.loop.histories:
            for pattern, times in history.patterns.items():
                clipped = _sums(pattern, place)
                passes = sum(count for event, count in pattern if event.action is Action.BACKWARD)
                often += times * (clipped > 1)
                once += times * (clipped == 1 < passes)
                alone += times * (clipped == 1 == passes)
        if often >= FEW and often > once + alone:
            message = (
                "the accumulated gradient is clipped after each backward pass: clip once, before the step"
            )
            yield Suspicion(place, message, {"steps": often, "clipped once": once + alone})
        elif once >= FEW and not often:
            because = f"{once} sums of several backward passes are clipped once each"
            yield Refutation(place, because, {"steps": once + alone, "clipped more than once": 0})
        elif alone and not often:
            yield Unobserved(place, "each step has one backward pass")


def _sums(pattern: StepPattern, place: Place) -> int:
    """How many different sums of gradients were clipped at a place, from the last backward pass that found none to the step."""
    found, is_new = 0, False
    for event, _ in pattern:
        if event.action is Action.BACKWARD:
            is_new, found = True, 0 if event.gradients is Condition.EMPTY else found
        elif event.action is Action.CLEAR:
            is_new, found = False, 0
        elif event.action is Action.CLIP and event.place == place and is_new:
            is_new, found = False, found + 1
    return found
