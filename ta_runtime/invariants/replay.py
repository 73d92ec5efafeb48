"""Plays a trace back to a checker: all ranks, step by step, with no more than a few thousand events in memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from operator import attrgetter

import pyarrow as pa

from ta_runtime.invariants.checking import Checker, values
from ta_runtime.invariants.template import BrokenInvariant, Telling
from ta_runtime.runs import Run
from ta_runtime.trace.event import Event

_AT_A_TIME = 1 << 12
"""Events, of long steps."""


def violations(
    trace: Run, checker: Checker, progress: Callable[[int], object] = lambda step: None
) -> Iterator[BrokenInvariant]:
    """What a trace breaks, in order of step and, within it, of rank.

    Args:
        trace: the folder of a run with events.
        checker: sees all of it.
        progress: called with each step before it is looked at.

    Raises:
        UsageError: a file of the trace is damaged.
    """
    waiting = {}
    for rank in sorted(trace.about):
        steps = groupby(events(trace, rank), attrgetter("step"))
        if (first := next(steps, None)) is not None:
            waiting[rank] = (first, steps)
    while waiting:
        step = min(head[0] for head, _ in waiting.values())
        progress(step)
        told: tuple[int, Telling] | None = None
        for rank, ((number, own), steps) in sorted(waiting.items()):
            if number != step:
                continue
            while some := list(islice(own, _AT_A_TIME)):
                yield from checker.see(some, rank)
            yield from checker.step_over(step, rank)
            telling = checker.told(rank)
            if told is None:
                told = rank, telling
            else:
                yield from checker.compare(rank, telling, told[0], values(told[1]))
            following = next(steps, None)
            if following is None:
                del waiting[rank]
            else:
                waiting[rank] = (following, steps)
    yield from checker.over()


def events(trace: Run, rank: int) -> Iterator[Event]:
    """The events of one rank, as they were told."""
    for batch in trace.batches("events", rank, Event._fields):
        yield from map(Event._make, zip(*map(_listed, batch.columns), strict=True))


def unequal(trace: Run) -> str | None:
    """Where ranks have not equally many events, as the end of a sentence; None if they have."""
    counts = {rank: Counter[int]() for rank in sorted(trace.about)}
    for rank, steps in counts.items():
        for batch in trace.batches("events", rank, ["step"]):
            for counted in batch.column(0).value_counts().to_pylist():
                steps[counted["values"]] += counted["counts"]
    first, *others = counts.items()
    for rank, steps in others:
        if steps != first[1]:
            step = min(step for step in steps | first[1] if steps[step] != first[1][step])
            return (
                f"the same events on all ranks: rank {first[0]} has {first[1].total()} and rank {rank} has "
                f"{steps.total()}, and they part in step {step}"
            )
    return None


def _listed(column: pa.Array) -> list[object]:
    """Its values; each different word is made once."""
    if isinstance(column, pa.DictionaryArray):
        words = column.dictionary.to_pylist()
        return [words[index] for index in column.indices.to_pylist()]
    found: list[object] = column.to_pylist()
    return found
