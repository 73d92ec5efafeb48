"""The metrics of a run by their keys, thinned to what a screen can show."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from ta_runtime.runs import Run

POINTS = 600
"""Intervals of steps that a line is thinned to: of each the smallest and the largest value are drawn."""
COLUMNS = 200
"""Of a map; more steps share them."""
TREND = 120
"""Values from which on a line of medians is drawn through them."""

Point = tuple[int, float]


@dataclass(frozen=True)
class Series:
    """One metric by step: of the lowest rank that has it, and where there are several the range over all of them."""

    key: str
    points: list[Point]
    ranks: int
    lowest: list[Point]
    highest: list[Point]

    def divided(self, by: float) -> "Series":
        """The same in another unit."""
        parts = {
            name: [(step, value / by) for step, value in getattr(self, name)]
            for name in ("points", "lowest", "highest")
        }
        return replace(self, **parts)  # type: ignore[arg-type]

    @cached_property
    def finite(self) -> list[Point]:
        return [point for point in self.points if math.isfinite(point[1])]

    @cached_property
    def thinned(self) -> list[Point]:
        """The finite ones, no more than two in each of `POINTS` intervals."""
        return thinned(self.finite)

    @property
    def is_thinned(self) -> bool:
        return len(self.thinned) < len(self.finite)

    @cached_property
    def trend(self) -> tuple[int, list[Point]]:
        """How many values each median is of, and medians; none of few values."""
        values = self.finite
        if len(values) < TREND:
            return 0, []
        reach, last = max(len(values) // 100, 2), len(values) - 1
        stride = max(len(values) // 300, 1)
        found = []
        for middle in [*range(0, last, stride), last]:
            near = values[max(middle - reach, 0) : middle + reach + 1]
            found.append((values[middle][0], median(value for _, value in near)))
        return 2 * reach + 1, found

    def broken(self) -> list[tuple[int, int]]:
        """The first and last step of each stretch of values that are not finite."""
        stretches: list[tuple[int, int]] = []
        inside = False
        for step, value in self.points:
            if math.isfinite(value):
                inside = False
            elif inside:
                stretches[-1] = stretches[-1][0], step
            else:
                stretches.append((step, step))
                inside = True
        return merged(stretches)


class Numbers:
    """The metrics of a run."""

    def __init__(self, run: Run) -> None:
        table = run.metrics.combine_chunks()
        words = (
            table["key"].chunk(0)
            if table["key"].num_chunks
            else pa.array([], pa.string()).dictionary_encode()
        )
        order = pc.unique(words.indices)
        names = words.dictionary.take(order).to_pylist()
        self.keys: list[str] = names
        """In the order in which the run first told of them."""
        self.ranks = sorted(pc.unique(table["rank"]).to_pylist())
        self.count = table.num_rows
        rows = pa.table(
            {"number": pc.index_in(words.indices, value_set=order), "rank": table["rank"],
             "step": table["step"], "value": table["value"]}
        )  # fmt: skip
        self._rows = rows.take(pc.array_sort_indices(rows["number"].combine_chunks())) if names else rows
        counts = {row["values"]: row["counts"] for row in pc.value_counts(rows["number"]).to_pylist()}
        self._numbers = {name: position for position, name in enumerate(names)}
        self._slices: dict[str, tuple[int, int]] = {}
        begin = 0
        for position, name in enumerate(names):
            self._slices[name] = begin, counts[position]
            begin += counts[position]

    def rows(self, key: str) -> pa.Table:
        """`number`, `rank`, `step`, `value`, by rank and step."""
        return self._rows.slice(*self._slices[key])

    def series(self, key: str) -> Series | None:
        """One metric; None if it was never recorded."""
        if key not in self._slices:
            return None
        rows = self.rows(key)
        ranks = sorted(pc.unique(rows["rank"]).to_pylist())
        own = rows.filter(pc.equal(rows["rank"], ranks[0]))
        points = list(zip(own["step"].to_pylist(), own["value"].to_pylist(), strict=True))
        if len(ranks) == 1:
            return Series(key, points, 1, [], [])
        finite = rows.filter(pc.is_finite(rows["value"]))
        ends = finite.group_by("step").aggregate([("value", "min"), ("value", "max")]).sort_by("step")
        steps = ends["step"].to_pylist()
        lowest = list(zip(steps, ends["value_min"].to_pylist(), strict=True))
        highest = list(zip(steps, ends["value_max"].to_pylist(), strict=True))
        return Series(key, points, len(ranks), *enveloped(lowest, highest))

    def ends(self) -> tuple[int, int] | tuple[()]:
        """The first and the last step of all; nothing of none."""
        found = pc.min_max(self._rows["step"]).as_py()
        return () if found["min"] is None else (found["min"], found["max"])

    def total(self, key: str, *, within: str = "") -> float | None:
        """The sum over all ranks; with `within`, of those steps that have that as well. None if it was never recorded."""
        if key not in self._slices:
            return None
        rows = self.rows(key)
        if within in self._slices:
            rows = rows.join(
                self.rows(within).select(["rank", "step"]), ["rank", "step"], join_type="left semi"
            )
        return float(pc.sum(rows["value"]).as_py() or 0.0)

    def grid(
        self, layers: Mapping[str, str], names: Sequence[str], *, squared: bool = False
    ) -> "Grid | None":
        """The largest number of each layer and interval of steps; what is not a number counts as infinite.

        `layers` are those of the keys, and `names` the same in the order of rows. Of several keys of one layer it is the largest, or if `squared` the root of the sum
        of their squares, at one step of one rank.
        """
        keys = [key for key in self.keys if key in layers]
        if not keys:
            return None
        places = {name: place for place, name in enumerate(names)}
        rows = pa.concat_tables([self.rows(key) for key in keys])
        of_number = {self._numbers[key]: places[layers[key]] for key in keys}
        found = pc.index_in(rows["number"], value_set=pa.array(list(of_number), rows["number"].type))
        layer = pc.take(pa.array(list(of_number.values()), pa.int64()), found)
        steps = pa.array(sorted(pc.unique(rows["step"]).to_pylist()), pa.int64())
        intervals = Intervals.of(steps.to_pylist(), COLUMNS)
        column = pc.divide(pc.index_in(rows["step"], value_set=steps), intervals.width)
        value = pc.if_else(pc.is_nan(rows["value"]), math.inf, rows["value"])
        table = pa.table(
            {"layer": layer, "column": column, "rank": rows["rank"], "step": rows["step"], "value": value}
        )
        if squared and len(names) < len(keys):
            table = table.set_column(4, "value", pc.multiply(value, value))
            table = table.group_by(["layer", "column", "rank", "step"]).aggregate([("value", "sum")])
            table = table.append_column("value", pc.sqrt(table["value_sum"]))
        largest = table.group_by(["layer", "column"]).aggregate([("value", "max")])
        cells: list[list[float | None]] = [[None] * len(intervals.firsts) for _ in names]
        for place, at, most in zip(
            *(largest[name].to_pylist() for name in ("layer", "column", "value_max")), strict=True
        ):
            cells[place][at] = most
        return Grid(list(names), intervals, cells)


@dataclass(frozen=True)
class Intervals:
    """The columns of a map: each step that it is about, or stretches of equally many of them."""

    firsts: list[int]
    lasts: list[int]
    width: int

    @classmethod
    def of(cls, steps: list[int], most: int) -> "Intervals":
        width = -(-len(steps) // most)
        parts = [steps[begin : begin + width] for begin in range(0, len(steps), width)]
        return cls([part[0] for part in parts], [part[-1] for part in parts], width)

    @property
    def middles(self) -> list[float]:
        return [(first + last) / 2 for first, last in zip(self.firsts, self.lasts, strict=True)]


@dataclass(frozen=True)
class Grid:
    """Numbers by layer and step."""

    names: list[str]
    intervals: Intervals
    cells: list[list[float | None]]

    def values(self) -> Iterator[tuple[str, int, float]]:
        """Layer, column and number of each cell that has one."""
        for name, row in zip(self.names, self.cells, strict=True):
            for column, value in enumerate(row):
                if value is not None:
                    yield name, column, value


def thinned(points: list[Point], most: int = POINTS) -> list[Point]:
    """No more than the smallest and the largest of each of so many intervals, and the two ends; all are finite."""
    if len(points) <= 2 * most + 2:
        return points
    inner = points[1:-1]
    kept = [points[0]]
    for begin, end in _parts(len(inner), most):
        part = range(begin, end)
        ends = {min(part, key=lambda i: inner[i][1]), max(part, key=lambda i: inner[i][1])}
        kept += [inner[i] for i in sorted(ends)]
    return [*kept, points[-1]]


def enveloped(
    lowest: list[Point], highest: list[Point], most: int = POINTS
) -> tuple[list[Point], list[Point]]:
    """The edges of a band at the same steps, of each interval the lowest and the highest."""
    if len(lowest) <= most:
        return lowest, highest
    parts = _parts(len(lowest), most)
    low = [(lowest[begin][0], min(value for _, value in lowest[begin:end])) for begin, end in parts]
    high = [(highest[begin][0], max(value for _, value in highest[begin:end])) for begin, end in parts]
    return low, high


def merged(stretches: list[tuple[int, int]], most: int = 60) -> list[tuple[int, int]]:
    """The same, with neighbours put together until there are few enough to draw."""
    if len(stretches) <= most:
        return stretches
    return [(stretches[begin][0], stretches[end - 1][1]) for begin, end in _parts(len(stretches), most)]


def _parts(count: int, most: int) -> list[tuple[int, int]]:
    """So many parts of about equal size: the first index of each, and the one after its last."""
    ends = [count * part // most for part in range(most + 1)]
    return [(begin, end) for begin, end in pairwise(ends) if begin < end]
