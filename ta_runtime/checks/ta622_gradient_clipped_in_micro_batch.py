"""TA622: gradients were clipped after several backward passes of one step, so their sum was cut repeatedly."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import LoopHistory, Refutation, Run, StepPattern, Suspicion
from ta_runtime.probes.places import Place

FEW = 2
"""Steps needed for a finding."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for place in dict.fromkeys(
        place for history in run.loop.histories for place in history.places(Action.CLIP)
    ):
        counts = [_counted(history, place) for history in run.loop.histories]
        often, once = sum(often for often, _ in counts), sum(once for _, once in counts)
        if often >= FEW and often > once:
            message = (
                "the accumulated gradient is clipped after each backward pass: clip once, before the step"
            )
            yield Suspicion(place, message, {"steps": often, "clipped once": once})
        elif once >= FEW and not often:
            yield Refutation(place, {"steps": once, "clipped more than once": 0})


def _counted(history: LoopHistory, place: Place) -> tuple[int, int]:
    """The steps whose gradients were clipped at a place between their backward passes, and those where they were once."""
    often = once = 0
    for pattern, times in history.patterns.items():
        clipped = _sums(pattern, place)
        often += times * (clipped > 1)
        once += times * (clipped == 1)
    return often, once


def _sums(pattern: StepPattern, place: Place) -> int:
    """How many different sums of gradients were clipped at a place after the last clearing before the step."""
    found, is_new = 0, False
    for event, _ in pattern:
        if event.action is Action.CLEAR:
            found, is_new = 0, False
        elif event.action is Action.BACKWARD:
            is_new = True
        elif event.action is Action.CLIP and event.place == place and is_new:
            found, is_new = found + 1, False
    return found
