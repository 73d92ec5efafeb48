"""What the history of an optimizer says of backward passes that add up to one step, and of what divided their losses."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.events.accumulations import Accumulation
from ta_runtime.facts import Condition, LoopHistory, ObservedAction, StepPattern
from ta_runtime.probes.places import Place

_PRECISION = 1e-5
"""Relative tolerance for a divisor read from the graph in single precision."""


def accumulations_of(history: LoopHistory) -> Iterator[Accumulation]:
    """Those of each line of backward passes."""
    whole, divided, counts = Counter[Place](), Counter[Place](), Counter[int]()
    usual: dict[Place, int] = {}
    for pattern, times in history.patterns.items():
        if (backward := _accumulated(pattern, is_chunked=history.chunked > 0)) is None:
            continue
        event, count = backward
        counts[count] += times
        usual[event.place] = counts.most_common(1)[0][0]
        if event.divisor == 1:
            whole[event.place] += times
        elif event.divisor is not None and abs(event.divisor - count) <= _PRECISION * count:
            divided[event.place] += times
    for place, batches in usual.items():
        yield Accumulation(place, batches, whole[place], divided[place])


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
