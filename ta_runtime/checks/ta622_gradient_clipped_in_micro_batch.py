"""TA622: gradients were clipped after several backward passes of one step, so their sum was cut repeatedly."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import LoopHistory, Refutation, Run, Said, StepPattern, Suspicion, Unobserved
from ta_runtime.probes.places import Place

FEW = 2
"""Steps needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for place in dict.fromkeys(
        place for history in run.loop.histories for place in history.places(Action.CLIP)
    ):
        counts = [_counted(history, place) for history in run.loop.histories]
        often, once, alone = (sum(count) for count in zip(*counts, strict=True))
        if often >= FEW and often > once:
            message = (
                "the accumulated gradient is clipped after each backward pass: clip once, before the step"
            )
            yield Suspicion(place, message, {"steps": often, "clipped once": once})
        elif once - alone >= FEW and not often:
            because = f"{once - alone} sums of several backward passes are clipped once each"
            yield Refutation(place, because, {"steps": once, "clipped more than once": 0})
        elif alone and not often:
            yield Unobserved(place, "each step has one backward pass")


def _counted(history: LoopHistory, place: Place) -> tuple[int, int, int]:
    """The steps whose gradients were clipped at a place between their backward passes, and those where they were once.

    And those of the last that have one backward pass, and so nothing between.
    """
    often = once = alone = 0
    for pattern, times in history.patterns.items():
        clipped = _sums(pattern, place)
        often += times * (clipped > 1)
        once += times * (clipped == 1)
        passes = sum(count for event, count in pattern if event.action is Action.BACKWARD)
        alone += times * (clipped == 1 and passes == 1)
    return often, once, alone


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
