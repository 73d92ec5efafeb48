"""What was measured of tensors, and the values that come of it, by their keys."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from ta_runtime.measure import moments
from ta_runtime.monitor.metrics import Target
from ta_runtime.monitor.statistics import PartialStatistics, Statistic

Column = list[float]
"""Values of one quantity, tensor after tensor; they come when they have arrived."""

Owners = list[Target]
"""For whom a tensor is measured: for several, if it is met under several names."""

_NOTHING = repeat(math.nan)


@dataclass(slots=True)
class Measured:
    """Tensors of one shape that were measured together."""

    owners: Sequence[Owners]
    count: int
    """Elements of each."""
    columns: Mapping[str, Column]
    """By the field of `Part`."""

    def parts(self) -> Iterator[PartialStatistics]:
        columns = [self.columns.get(name, _NOTHING) for name in moments.FIELDS]
        return map(PartialStatistics, repeat(self.count, len(self.owners)), *columns)

    def values(self, statistic: Statistic) -> Sequence[float]:
        """A statistic of each of the tensors by itself."""
        if statistic.of_each is not None and self.count and self.columns.keys() >= set(statistic.needs):
            return statistic.of_each(self.count, self.columns)
        return [statistic.of([part]) for part in self.parts()]


class Once:
    """The values of a step in which everything was measured once, column by column.

    Under which keys they go is kept, as a step mostly measures what the step before did.
    """

    def __init__(self) -> None:
        self._owners: list[list[Owners]] = []
        self._count = 0
        self._wanted: list[list[Statistic]] = []
        self._keys: list[str] = []
        self._places: list[int] = []

    def values(self, targets: Mapping[Target, None], measured: Sequence[Measured]) -> dict[str, float] | None:
        """The value of each key, in the order of the targets; None if something was measured more than once."""
        if len(targets) != self._count or [one.owners for one in measured] != self._owners:
            met = [target for one in measured for owners in one.owners for target in owners]
            if len(met) != len(targets) or targets.keys() != set(met):
                return None
            self._arrange(targets, measured)
        columns = (
            one.values(each) for one, wanted in zip(measured, self._wanted, strict=True) for each in wanted
        )
        values = list(chain.from_iterable(columns))
        return dict(zip(self._keys, map(values.__getitem__, self._places), strict=True))

    def _arrange(self, targets: Mapping[Target, None], measured: Sequence[Measured]) -> None:
        self._count = len(targets)
        self._owners = [[owners.copy() for owners in one.owners] for one in measured]
        self._wanted = []
        places: dict[str, int] = {}
        start = 0
        for rows in self._owners:
            owned = [
                (row, wanted)
                for row, owners in enumerate(rows)
                for target in owners
                for wanted in target.wanted
            ]
            statistics = list(dict.fromkeys(statistic for _, (_, statistic) in owned))
            for row, (key, statistic) in owned:
                places[key] = start + statistics.index(statistic) * len(rows) + row
            start += len(statistics) * len(rows)
            self._wanted.append(statistics)
        self._keys = [key for target in targets for key, _ in target.wanted]
        self._places = [places[key] for key in self._keys]
