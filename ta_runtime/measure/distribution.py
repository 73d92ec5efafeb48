"""The statistics of a tensor, as NumPy and SciPy define them, summed in float64.

Of complex tensors they are those of the magnitudes; of booleans those of 0 and 1. NaN goes through: the mean of what
holds a NaN is NaN.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ta_lint.core.errors import UsageError
from ta_runtime.measure.digests import pieces
from ta_runtime.measure.memory import Undigestible

NAMES = (
    "shape", "dtype", "infs", "nans", "zeros", "med", "mean", "amean", "std", "var", "uvar", "skew", "kurt", "mode",
    "min", "max", "hash",
)  # fmt: skip
"""What may be asked for; `shape`, `dtype` and `hash` are part of every record anyway."""

_CHUNK = 1 << 18  # elements that are in float64 at once on a CPU
_DEVICE_CHUNK = 1 << 24
_COUNTS = ("pos_infs", "neg_infs", "nans", "zeros")
_MOMENTS = {"mean": 1, "std": 2, "var": 2, "uvar": 2, "skew": 3, "kurt": 4}


def columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns of `runs.schema.STATISTICS` for the names of statistics.

    Raises:
        UsageError: there is no such statistic.
    """
    given = [names] if isinstance(names, str) else list(names)
    if given == ["all"]:
        given = list(NAMES)
    for name in given:
        if name not in NAMES:
            raise UsageError(f"statistics: {name!r} is none of {', '.join(NAMES)}, or 'all'")
    found = [name for name in given if name not in ("shape", "dtype", "hash")]
    return tuple(column for name in found for column in (_COUNTS[:2] if name == "infs" else (name,)))


@torch.no_grad()
def measure(tensor: Tensor, wanted: Sequence[str]) -> dict[str, Tensor]:
    """Statistics of a tensor by column, each as one float64 on its own device, without waiting for it.

    Args:
        tensor: of any shape and dtype; of a sparse one the values count, of a distributed one this rank's part.
        wanted: columns of `runs.schema.STATISTICS`.

    Returns:
        `pos_infs`, `neg_infs`, `nans`, `zeros`: numbers of elements; of complex ones an infinity has no sign and counts
        as positive. `med`: as `numpy.median`. `mean`; `amean`, that of magnitudes. `var`: biased; `uvar`: unbiased;
        `std`: the root of `uvar`. `skew`: as `scipy.stats.skew`; `kurt`: as `scipy.stats.kurtosis` with
        `fisher=False`, 3 for a normal distribution. `mode`: the smallest of the most frequent values. `min`, `max`.
        What a tensor has not, such as the mean of no elements, is left out, and all where it has no numbers to read.
    """
    if not wanted:
        return {}
    try:
        flat = _real(torch.cat(parts) if len(parts := _values(tensor)) > 1 else parts[0])
        flat[:1].double()  # raises for a dtype without numbers
    except (Undigestible, RuntimeError, TypeError, NotImplementedError):
        return {}
    found = _counted(flat, wanted)
    if flat.numel():
        found |= _moments(flat, wanted) | _ordered(flat, wanted)
    return {name: value.double() for name, value in found.items() if name in wanted}


def _values(tensor: Tensor) -> list[Tensor]:
    if tensor.is_quantized:
        return pieces(tensor.dequantize())
    if tensor.is_nested:
        return [pieces(part)[-1] for part in tensor.unbind()] or [torch.empty(0)]
    return pieces(tensor)[-1:]


def _real(flat: Tensor) -> Tensor:
    """As numbers of a dtype that can be sorted and counted."""
    if flat.is_complex():
        return flat.abs() if flat.dtype is not torch.complex32 else flat.to(torch.complex64).abs()
    if flat.dtype is torch.bool:
        return flat.view(torch.uint8)
    if flat.is_floating_point() and flat.element_size() == 1:
        return flat.float()
    if flat.dtype in (torch.uint16, torch.uint32):
        return flat.long()
    return flat.double() if flat.dtype is torch.uint64 else flat


def _counted(flat: Tensor, wanted: Sequence[str]) -> dict[str, Tensor]:
    floating = flat.is_floating_point()
    none = torch.zeros((), dtype=torch.int64, device=flat.device)
    found = {}
    if "zeros" in wanted:
        found["zeros"] = flat.numel() - flat.count_nonzero()
    for name, test in (("pos_infs", torch.isposinf), ("neg_infs", torch.isneginf), ("nans", torch.isnan)):
        if name in wanted:
            found[name] = test(flat).count_nonzero() if floating else none
    return found


def _moments(flat: Tensor, wanted: Sequence[str]) -> dict[str, Tensor]:
    count = flat.numel()
    found: dict[str, Tensor] = {}
    parts = torch.split(flat, _CHUNK if flat.device.type == "cpu" else _DEVICE_CHUNK)
    if "amean" in wanted:
        found["amean"] = _summed(parts, torch.abs) / count
    highest = max((_MOMENTS.get(name, 0) for name in wanted), default=0)
    if not highest:
        return found
    mean = found["mean"] = _summed(parts, lambda part: part) / count
    if highest == 1:
        return found
    sums = [torch.zeros_like(mean) for _ in range(highest - 1)]
    for part in parts:
        apart = part.double() - mean
        power = apart
        for index in range(highest - 1):
            sums[index] = sums[index] + torch.dot(power, apart)
            power = power * apart if index < highest - 2 else power
    variance = sums[0] / count
    found |= {"var": variance, "uvar": sums[0] / (count - 1), "std": (sums[0] / (count - 1)).sqrt()}
    if highest > 2:
        found["skew"] = sums[1] / count / variance**1.5
    if highest > 3:
        found["kurt"] = sums[2] / count / variance**2
    return found


def _summed(parts: Sequence[Tensor], of: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.stack([of(part.double()).sum() for part in parts]).sum()


def _ordered(flat: Tensor, wanted: Sequence[str]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    count = flat.numel()
    if "med" in wanted or "mode" in wanted:
        ordered = flat.sort().values
        last = ordered[-1].double()  # NaN, if there is one
        if "med" in wanted:
            middle = (ordered[(count - 1) // 2].double() + ordered[count // 2].double()) / 2
            found["med"] = torch.where(last.isnan(), last, middle)
        if "mode" in wanted:
            found["mode"] = _mode(ordered)
        found["min"] = torch.where(last.isnan(), last, ordered[0].double())
        found["max"] = last
        return found
    if "min" in wanted:
        found["min"] = flat.min()
    if "max" in wanted:
        found["max"] = flat.max()
    return found


def _mode(ordered: Tensor) -> Tensor:
    """The first of the longest runs of equal values; NaN, of which all are equal here, come last."""
    places = torch.arange(1, len(ordered) + 1, device=ordered.device)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[1:] = (ordered[1:] != ordered[:-1]) & ~ordered[:-1].isnan()
    lengths = places - torch.where(begins, places, 0).cummax(0).values
    longest: Any = lengths == lengths.max()
    first = torch.where(longest, places, len(ordered) + 1).min() - 1
    return ordered.gather(0, first.view(1))[0].double()
