"""Statistics that are exact over the union of several tensors: of micro-batches, of calls, of ranks.

The device measures a few quantities of each tensor, a `PartialStatistics`; the host puts the parts together in double precision. So
a standard deviation over micro-batches is that of all their elements, not a mean of standard deviations.

Each statistic can be given to a monitor by its name or as it is, and is a function of a tensor:

    monitor.add_activation_metric("std")
    monitor.add_activation_metric("spread", statistics.std)
    statistics.std(torch.randn(4))
"""

import builtins
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True)
class PartialStatistics:
    """What was measured of one tensor. Only what a statistic needs is filled in."""

    count: int
    mean: float = math.nan
    centred: float = math.nan  # the L2 norm of what is left without the mean
    norm: float = math.nan  # L2
    magnitude: float = math.nan  # the mean of the absolute values
    highest: float = math.nan
    lowest: float = math.nan


Columns = Mapping[str, Sequence[float]]
"""Fields of several parts, by name."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A function of a tensor, or of the difference of two, that can be put together from parts."""

    name: str
    needs: tuple[str, ...]  # fields of `PartialStatistics`
    of: Callable[[Sequence[PartialStatistics]], float]
    """Its value over the union of parts; NaN where they have no element at all, or too few."""
    direct: Callable[[Tensor], Tensor]
    of_each: Callable[[int, Columns], Sequence[float]] | None = None
    """The same as `of` gives of each part by itself, for all at once, if they have so many elements each, and some."""

    def __call__(self, tensor: Tensor, other: Tensor | None = None) -> Tensor:
        """The statistic of one tensor, or of the difference of two of one shape: a tensor of one element."""
        return self.direct(_real(tensor if other is None else tensor - other))


def _mean(parts: Sequence[PartialStatistics]) -> float:
    if len(parts) == 1:
        return parts[0].mean
    count = sum(part.count for part in parts)
    return sum(part.count * part.mean for part in parts if part.count) / count if count else math.nan


def _squares(parts: Sequence[PartialStatistics]) -> tuple[int, float]:
    """How many elements there are, and the sum of squares of their distances from their common mean (Chan et al. 1979)."""
    count, mean, squares = 0, 0.0, 0.0
    for part in parts:
        if part.count:
            total = count + part.count
            distance = part.mean - mean
            squares += part.centred * part.centred + distance * distance * (count * part.count / total)
            mean += distance * (part.count / total)
            count = total
    return count, squares


def _var(parts: Sequence[PartialStatistics]) -> float:
    count, squares = _squares(parts)
    return squares / (count - 1) if count > 1 else math.nan


def _std(parts: Sequence[PartialStatistics]) -> float:
    return math.sqrt(_var(parts))


def _std_of_each(count: int, columns: Columns) -> Sequence[float]:
    degrees = math.sqrt(count - 1) if count > 1 else math.nan
    return [centred / degrees for centred in columns["centred"]]


def _norm(parts: Sequence[PartialStatistics]) -> float:
    found = [part.norm for part in parts if part.count]
    return math.hypot(*found) if found else math.nan


def _rms(parts: Sequence[PartialStatistics]) -> float:
    count = sum(part.count for part in parts)
    return _norm(parts) / math.sqrt(count) if count else math.nan


def _abs_mean(parts: Sequence[PartialStatistics]) -> float:
    count = sum(part.count for part in parts)
    return sum(part.count * part.magnitude for part in parts if part.count) / count if count else math.nan


def _column(name: str) -> Callable[[int, Columns], Sequence[float]]:
    return lambda count, columns: columns[name]


def _extreme(choose: Callable[[list[float]], float], values: Iterable[float]) -> float:
    """A NaN is the answer if there is one, as in torch."""
    found = list(values)
    return math.nan if not found or any(map(math.isnan, found)) else choose(found)


def _max(parts: Sequence[PartialStatistics]) -> float:
    return _extreme(builtins.max, (part.highest for part in parts if part.count))


def _min(parts: Sequence[PartialStatistics]) -> float:
    return _extreme(builtins.min, (part.lowest for part in parts if part.count))


def _abs_max(parts: Sequence[PartialStatistics]) -> float:
    return _extreme(
        builtins.max, (abs(value) for part in parts if part.count for value in (part.highest, part.lowest))
    )


mean = Statistic("mean", ("mean",), _mean, torch.mean, _column("mean"))
std = Statistic("std", ("mean", "centred"), _std, torch.std, _std_of_each)
"""Unbiased, as `Tensor.std` is."""
var = Statistic("var", ("mean", "centred"), _var, torch.var)
"""Unbiased, as `Tensor.var` is."""
norm = Statistic("norm", ("norm",), _norm, torch.linalg.vector_norm, _column("norm"))
"""The L2 norm of all elements."""
rms = Statistic("rms", ("norm",), _rms, lambda tensor: tensor.square().mean().sqrt())
"""The square root of the mean of the squares."""
abs_mean = Statistic(
    "abs_mean", ("magnitude",), _abs_mean, lambda tensor: tensor.abs().mean(), _column("magnitude")
)
max = Statistic("max", ("highest",), _max, torch.max, _column("highest"))
min = Statistic("min", ("lowest",), _min, torch.min, _column("lowest"))
abs_max = Statistic("abs_max", ("highest", "lowest"), _abs_max, lambda tensor: tensor.abs().max())

STATISTICS = {one.name: one for one in (mean, std, var, norm, rms, abs_mean, max, min, abs_max)}


def named(name: str) -> Statistic:
    """The statistic of a name.

    Raises:
        ValueError: There is none.
    """
    if name not in STATISTICS:
        known = ", ".join(STATISTICS)
        raise ValueError(f"no statistic is called {name!r}: give a function of a tensor, or one of {known}")
    return STATISTICS[name]


def _real(tensor: Tensor) -> Tensor:
    """Whole numbers and truth values have no mean in torch; half precision has one of few digits."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)
