"""How the cost of linting grows with the lines: nested samples of one tree, and the power of their number that fits.

A sample of a few files says little of the next one: most of the cost is in the files that have something to find. So at
each size the whole tree is divided into samples of that size, all are linted, and what one costs is their mean. The mix of
files is then the same at every size, exactly.
"""

import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from corpus import sources
from tables import aligned

from speed.timing import Command, timed
from speed.trees import lines

PARTS = (120, 24, 6, 2, 1)
"""Into how many samples the tree is divided: 1.2 million lines into those of 10,000 and so on, each in one of the next."""

_SEED = 7
_EXPONENTS = [step / 1000 for step in range(500, 2001)]


@dataclass(frozen=True)
class Sample:
    """The samples of one size: lines and user CPU seconds of a mean one."""

    parts: int
    lines: float
    user_s: float


@dataclass(frozen=True)
class Growth:
    """The cost as `start_s + slope * lines ** exponent`."""

    exponent: float
    start_s: float
    samples: list[Sample]


def measured(
    tree: Path,
    scratch: Path,
    lint: Callable[[Iterable[Path]], Command],
    rounds: int,
    progress: Callable[[str], None],
) -> Growth:
    """Lint the samples of every size, mixed by chance so that a machine that slows down slows all; the least of the rounds.

    Raises:
        Missing: the linter did not run to its end.
    """
    folders = divided(tree, PARTS[0], scratch / "samples")
    nested = [(parts, joined) for parts in PARTS for joined in _joined(folders, parts)]
    least: dict[tuple[int, Path], float] = {}
    for number in range(rounds):
        progress(f"growth, round {number + 1} of {rounds}: {len(nested)} samples of {len(PARTS)} sizes")
        random.Random(number).shuffle(nested)
        for parts, joined in nested:
            run = timed(lint(joined), scratch)
            key = (parts, joined[0])
            least[key] = min(run.user_s, least.get(key, run.user_s))
    whole = sum(lines(path.read_bytes()) for path in sources(tree))
    samples = [
        Sample(parts, whole / parts, fmean(cost for (other, _), cost in least.items() if other == parts))
        for parts in sorted(PARTS, reverse=True)
    ]
    return fitted(samples)


def fitted(samples: list[Sample]) -> Growth:
    """Start-up, slope and exponent with the least squares of relative errors.

    The start-up is fitted with the others, and never negative. That of an empty run could be subtracted instead, but part
    of it, such as loading a parser, is paid when a first file asks for it.
    """

    def error(exponent: float) -> tuple[float, float, float]:
        powers = [sample.lines**exponent for sample in samples]
        costs = [sample.user_s for sample in samples]
        start, slope = _line(powers, costs)
        if start < 0:
            start, slope = 0.0, _slope(powers, costs)
        predicted = (start + slope * power for power in powers)
        squares = sum(
            (cost / sample.user_s - 1) ** 2 for cost, sample in zip(predicted, samples, strict=True)
        )
        return squares, exponent, start

    _, exponent, start = min(map(error, _EXPONENTS))
    return Growth(exponent, start, samples)


def rendered(growth: Growth) -> Iterator[str]:
    """The samples, and the power that fits them, line by line."""
    rows: list[tuple[str, ...]] = [("lines", "samples", "user CPU s", "ms / 1,000 lines without start-up")]
    for sample in growth.samples:
        per_thousand = 1e6 * (sample.user_s - growth.start_s) / sample.lines
        rows.append(
            (f"{sample.lines:,.0f}", str(sample.parts), f"{sample.user_s:.3g}", f"{per_thousand:.3g}")
        )
    yield from aligned(rows)
    yield ""
    yield f"Fitted to these: {growth.start_s:.3g} s of start-up, and a cost by lines to the power of {growth.exponent:.3f}."


def divided(tree: Path, parts: int, into: Path) -> list[Path]:
    """A copy of a tree as so many of about as many lines each; every file is in one of them, by a chance that is always the same."""
    paths = sources(tree)
    random.Random(_SEED).shuffle(paths)
    folders = [into / f"{number:04}" for number in range(parts)]
    for folder in folders:
        folder.mkdir(parents=True)
    for path, number in zip(paths, shares([lines(path.read_bytes()) for path in paths], parts), strict=True):
        copy = folders[number] / path.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return folders


def shares(sizes: list[int], parts: int) -> list[int]:
    """Which part each of these goes to, in order: parts of about one size, cut where a next one begins."""
    before = accumulate(sizes, initial=0)
    return [start * parts // sum(sizes) for start, _ in zip(before, sizes, strict=False)]


def _joined(folders: list[Path], parts: int) -> list[list[Path]]:
    """Neighbours together, so that so many are left."""
    each = len(folders) // parts
    return [folders[start : start + each] for start in range(0, len(folders), each)]


def _line(powers: list[float], costs: list[float]) -> tuple[float, float]:
    """Start and slope with the least squares of relative errors."""
    weights = [cost**-2 for cost in costs]
    total = sum(weights)
    mean_power = sum(map(_product, weights, powers)) / total
    mean_cost = sum(map(_product, weights, costs)) / total
    offsets = [power - mean_power for power in powers]
    slope = sum(
        weight * offset * (cost - mean_cost)
        for weight, offset, cost in zip(weights, offsets, costs, strict=True)
    ) / sum(weight * offset**2 for weight, offset in zip(weights, offsets, strict=True))
    return mean_cost - slope * mean_power, slope


def _slope(powers: list[float], costs: list[float]) -> float:
    """The slope with the least squares of relative errors, where the start is nothing."""
    relative = [power / cost for power, cost in zip(powers, costs, strict=True)]
    return sum(relative) / sum(value**2 for value in relative)


def _product(first: float, second: float) -> float:
    return first * second
