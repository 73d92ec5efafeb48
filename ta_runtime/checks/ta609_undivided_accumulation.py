"""TA609: gradients of several batches are accumulated, but the mean losses are not divided by their number."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import (
    Condition,
    LoopHistory,
    ObservedAction,
    Refutation,
    Run,
    Said,
    StepPattern,
    Suspicion,
)
from ta_runtime.probes.places import Place

FEW = 2
"""Steps for several batches needed for a finding."""
PRECISION = 1e-5
"""Relative tolerance for a divisor read from the graph in single precision."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        for place, (whole, divided, count) in _accumulations(history).items():
            if whole >= FEW and not divided:
                message = (
                    "gradients of several batches are summed and too large: divide the loss by their number"
                )
                yield Suspicion(place, message, {"batches to a step": count, "loss divided by": 1})
            elif divided and not whole:
                because = f"the loss is divided by the {count} batches to a step"
                yield Refutation(place, because, {"batches to a step": count, "loss divided by": count})


def _accumulations(history: LoopHistory) -> dict[Place, tuple[int, int, int]]:
    """By line of the backward passes: the steps with undivided losses, the steps with divided ones, and the number of passes."""
    found: dict[Place, tuple[int, int, int]] = {}
    counts = Counter[int]()
    for pattern, times in history.patterns.items():
        if (backward := _accumulated(pattern, is_chunked=history.chunked > 0)) is None:
            continue
        event, count = backward
        counts[count] += times
        whole, divided, _ = found.get(event.place, (0, 0, 0))
        if event.divisor == 1:
            whole += times
        elif event.divisor is not None and abs(event.divisor - count) <= PRECISION * count:
            divided += times
        found[event.place] = (whole, divided, counts.most_common(1)[0][0])
    return found


def _accumulated(pattern: StepPattern, *, is_chunked: bool) -> tuple[ObservedAction, int] | None:
    """The backward pass and its count, if all for a step are equal and nothing else changes gradients.

    Each is for the next batch, or for the next part of one.
    """
    backwards = Counter[ObservedAction]()
    for event, count in pattern:
        if event.action is Action.BACKWARD:
            backwards[event._replace(is_next_batch=event.is_next_batch or is_chunked)] += count
    passes = any(event.action is Action.EPOCH for event, _ in pattern)
    last = pattern[-1][0]
    if (
        len(backwards) != 1
        or passes
        or last.action is not Action.STEP
        or last.gradients is not Condition.FRESH
    ):
        return None
    [(event, count)] = backwards.items()
    return (event, count) if count > 1 and event.is_next_batch else None
