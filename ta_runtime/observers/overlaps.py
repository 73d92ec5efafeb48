"""Compares the samples of loaders that evaluate with those of loaders that train, when the run is over."""

from collections.abc import Iterator

from ta_runtime import ranks
from ta_runtime.facts import DataShare, Loader, Overlap, Run
from ta_runtime.observers.observer import Observer

_MOST = 64
"""Pairs of loaders that are compared."""
_LONGEST = 2_000_000
"""Samples of a data set whose numbers are compared."""
_TOLD = 400_000
"""Samples of one of whose parts the ranks tell each other: 50 kB."""


class Overlaps(Observer):
    """Keeps nothing: the loaders have what was noted."""

    def report(self, run: Run) -> None:
        if run.over and "TA320" in self.session.settings.rules:
            run.overlaps += compared(run.loaders)
        if run.over and "TA328" in self.session.settings.rules and ranks.known():
            run.told.parts = [_part(loader) for loader in run.loaders]


def _part(loader: Loader) -> DataShare | None:
    indices = loader.indices
    if indices is None or not indices.chosen or indices.length > _TOLD:
        return None
    bits = bytearray(indices.length // 8 + 1)
    for number in indices.numbers():
        bits[number // 8] |= 1 << number % 8
    trains = loader.stepped_at is not None and not loader.evaluates
    return DataShare(indices.length, int.from_bytes(bits, "little"), trains, loader.evaluates)


def compared(loaders: list[Loader]) -> Iterator[Overlap]:
    """What the loaders that evaluate share with those that had trained before."""
    evaluating = [loader for loader in loaders if loader.evaluates]
    pairs = [(one, other) for one in evaluating for other in one.after if not other.evaluates]
    for one, other in pairs[:_MOST]:
        found = _by_number(one, other) or _by_content(one, other)
        if found is not None:
            yield found


def _by_number(evaluated: Loader, trained: Loader) -> Overlap | None:
    """Of one data set: as long as one reference to it is kept, all of them are the same object."""
    first, second = evaluated.indices, trained.indices
    if first is None or second is None or first.length > _LONGEST or first.length != second.length:
        return None
    if first.dataset is not second.dataset:
        return None
    numbers, others = first.numbers(), second.numbers()
    if not numbers:
        return None
    return Overlap(evaluated, trained, len(numbers), len(numbers & others), True, 0.0, True)


def _by_content(evaluated: Loader, trained: Loader) -> Overlap | None:
    first, second = evaluated.told, trained.told
    if not first.count or not second.count:
        return None
    repeated = max(first.repeated / first.count, second.repeated / second.count)
    shared = len(first.hashes & second.hashes)
    whole = first.whole and second.whole and evaluated.seen.ended and trained.seen.ended
    return Overlap(evaluated, trained, len(first.hashes), shared, False, repeated, whole)
