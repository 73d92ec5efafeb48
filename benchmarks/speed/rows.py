"""The table: what is compared with what, and what is asked of the ratio."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tables import aligned

from speed import commands as c
from speed.growth import Growth
from speed.timing import Run, Runs

MEMORY, GROWTH, SAME, IMPORTS = "memory", "growth", "same", "imports"


CPU, CLOCK = "CPU", "clock"


class Row(NamedTuple):
    """Two commands, and what ours over the other's may be at most; None where nothing is asked.

    One process beside one is judged by CPU time, which other programs disturb least; where one of the commands has
    several, by the clock.
    """

    name: str  # for `--only`
    ours: str
    peer: str
    by: str
    bar: float | None
    aim: float | None


ROWS = (
    Row("torchfix", c.TIMM_COLD, c.TORCHFIX, CLOCK, 1 / 50, 1 / 150),
    Row("torchfix", c.TIMM_COLD, c.TORCHFIX_ALONE, CPU, None, None),
    Row("parse", c.TIMM_COLD, c.TIMM_PARSED, CPU, 0.3, 0.12),
    Row("parse", c.COLD, c.PARSED, CPU, 0.3, 0.12),
    Row("two", c.COLD_BY_TWO, c.PARSED, CLOCK, 0.15, 0.05),
    Row("warm", c.WARM, c.RUFF, CLOCK, 1.0, 0.3),
    Row("changed", c.CHANGED, c.IMPORT, CPU, 2.0, 1.2),
    Row("help", c.HELP, c.PASS, CPU, 5.0, 3.0),
    Row("torch-free", c.TORCH_FREE, c.PASS, CPU, 5.0, 3.0),
)
MEMORY_BAR, MEMORY_AIM = 300.0, 150.0  # MB, of one process over transformers
GROWTH_BAR = 1.05  # the exponent of the lines

NAMES = tuple(dict.fromkeys([*(row.name for row in ROWS), MEMORY, GROWTH, SAME, IMPORTS]))


@dataclass(frozen=True)
class Figure:
    """A measured row: a median with its least and most, beside what is asked."""

    name: str
    what: str
    ours: str
    peer: str
    by: str
    value: float
    least: float
    most: float
    other: float | None  # by the clock, where it is judged by CPU time, and the reverse
    bar: float | None
    aim: float | None

    @property
    def is_missed(self) -> bool:
        return self.bar is not None and self.value > self.bar

    @property
    def reached(self) -> str:
        """`aim`, `bar`, or `missed`."""
        if self.bar is None:
            return ""
        if self.is_missed:
            return "missed"
        return "aim" if self.aim is not None and self.value <= self.aim else "bar"


def needed(names: set[str]) -> set[str]:
    """The commands that these rows compare."""
    both = {command for row in ROWS if row.name in names for command in (row.ours, row.peer)}
    return both | ({c.COLD} if MEMORY in names else set())


def figures(names: set[str], runs: Runs, growth: Growth | None) -> Iterator[Figure]:
    """The rows of these names for which the commands were run."""
    for row in ROWS:
        if row.name in names and row.ours in runs and row.peer in runs:
            yield compared(row, runs[row.ours], runs[row.peer])
    if MEMORY in names:
        peaks = [run.peak_mb for run in runs[c.COLD]]
        what, worst = f"{c.COLD}: peak memory in MB", max(peaks)
        yield Figure(MEMORY, what, "", "", "", worst, min(peaks), worst, None, MEMORY_BAR, MEMORY_AIM)
    if growth is not None:
        what, power = "ta-lint, transformers, 1 process: power of the lines", growth.exponent
        yield Figure(GROWTH, what, "", "", "user CPU", power, power, power, None, GROWTH_BAR, None)


def compared(row: Row, ours: list[Run], peer: list[Run]) -> Figure:
    """Ours over the peer's within each round, as far as both went."""
    pairs = list(zip(ours, peer, strict=False))
    by_clock = [one.wall_s / other.wall_s for one, other in pairs]
    by_cpu = [one.cpu_s / other.cpu_s for one, other in pairs]
    ratios, others = (by_cpu, by_clock) if row.by == CPU else (by_clock, by_cpu)
    return Figure(
        row.name, f"{row.ours}, to {row.peer}", _typical(ours, row.by), _typical(peer, row.by), row.by,
        statistics.median(ratios), min(ratios), max(ratios), statistics.median(others), row.bar, row.aim,
    )  # fmt: skip


def _typical(runs: list[Run], by: str) -> str:
    return f"{statistics.median(run.cpu_s if by == CPU else run.wall_s for run in runs):.3g} s"


def table(measured: list[Figure]) -> Iterator[str]:
    """The figures as Markdown that reads as plain text, line by line."""
    header = ("", "ta-lint", "peer", "ratio", "least-most", "by", "by the other", "bar", "aim", "reached")
    rows: list[tuple[str, ...]] = [header]
    for figure in measured:
        extremes = f"{shown(figure.least)}-{shown(figure.most)}" if figure.least != figure.most else ""
        ratio = (shown(figure.value), extremes, figure.by, shown(figure.other))
        asked = (shown(figure.bar), shown(figure.aim), figure.reached)
        rows.append((figure.what, figure.ours, figure.peer, *ratio, *asked))
    yield from aligned(rows)


def shown(value: float | None) -> str:
    """Three digits; of small ratios the reciprocal, which is easier to read: 1/50."""
    if value is None:
        return ""
    return f"{value:.3g}" if value >= 0.04 else f"1/{1 / value:.3g}"
