"""TA307: a generator that a data set holds is copied into each worker, where it draws the same numbers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ta_runtime.facts import Loader, Refutation, Run, Said, Stream, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        cause = f"workers of {loader.place}"  # its other effects are not separate findings
        for stream in loader.streams:
            said = _said(loader, stream)
            if isinstance(said, Suspicion):
                said, cause = replace(said, cause=cause), ""
            if said is not None:
                yield said


def _said(loader: Loader, stream: Stream) -> Said | None:
    if loader.workers == 0:
        return Unobserved(stream.place, "the loader has no workers")
    first = next((states for states in stream.states if states), {})
    drawn = [pair for pair in first.values() if pair[0] != pair[1]]
    alike = max(Counter(drawn).values(), default=0)
    numbers = {"workers": len(first)}
    if loader.trained and alike > 1:
        message = f"workers copy `self.{stream.name}`, so all draw the same numbers: build it in each, from the worker's seed"
        return Suspicion(stream.place, message, {**numbers, "workers with the same numbers": alike})
    if loader.trained and len(first) == 1 and drawn and stream.states.count(first) > 1:
        message = f"every epoch repeats the random numbers of `self.{stream.name}`: build it in each worker"
        return Suspicion(stream.place, message, numbers)
    if len(first) > 1 and not drawn:
        return Unobserved(stream.place, f"none of {len(first)} workers drew from it")
    if len({before for before, _ in drawn}) == len(first) > 1:
        because = f"all {len(first)} workers draw from different states"
        return Refutation(stream.place, because, {**numbers, "different streams": len(drawn)})
    if len(first) < 2:
        return Unobserved(stream.place, "fewer than two workers drew from it")
    return None
