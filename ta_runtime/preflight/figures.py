"""What is in a tensor, in figures that people look at: its range, its histogram, how often each class comes."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ta_runtime.measure.kinds import local

_LOOKED_AT = 1 << 20
"""Elements of which a histogram is made: of more, an even sample."""
_ROWS_LOOKED_AT = 1 << 26
"""Bytes of a batch whose samples are compared."""
BINS = 16
_CLASSES = 1000
"""Of more different integers than that, none is counted."""


@dataclass(slots=True)
class Figures:
    """A tensor, and what was found in it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    of_integers: bool = False
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    missing: float = 0.0
    """The share of NaN and infinite values."""
    zeros: float = 0.0
    histogram: list[int] = field(default_factory=list)
    """How many values lie in each of 16 equal parts of the range; of real numbers."""
    counts: list[tuple[int, int]] = field(default_factory=list)
    """Each integer with how often it comes, the commonest first; of integers that are few."""
    repeated: int = 0
    """Samples, rows of the tensor, that are copies of one before."""
    remarks: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return torch.Size(self.shape).numel()


def figures(name: str, tensor: Tensor) -> Figures:
    """What is in a tensor. Waits for its device."""
    with torch.no_grad():
        values = local(tensor.detach())
        found = Figures(
            name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), str(tensor.device)
        )
        if not values.numel() or values.is_meta or values.is_complex() or values.layout is not torch.strided:
            return found
        found.repeated = _repeated(values)
        if values.is_floating_point():
            _reals(found, values)
        else:
            _integers(found, values)
    return found


def _reals(found: Figures, values: Tensor) -> None:
    flat = _sample(values).to("cpu", torch.float64)
    finite = flat[flat.isfinite()]
    found.missing = 1 - float(values.isfinite().to("cpu").count_nonzero()) / values.numel()
    if not finite.numel():
        return
    found.zeros = float((finite == 0).count_nonzero()) / finite.numel()
    lowest, highest = (float(each) for each in torch.aminmax(values if not found.missing else finite))
    found.minimum, found.maximum = lowest, highest
    found.mean, found.std = float(finite.mean()), float(finite.std(correction=0))
    width = (highest - lowest) or 1.0
    places = ((finite - lowest) / width * BINS).long().clamp_(0, BINS - 1)
    found.histogram = torch.bincount(places, minlength=BINS).tolist()


def _integers(found: Figures, values: Tensor) -> None:
    found.of_integers = True
    flat = _sample(values).to("cpu", torch.int64)
    lowest, highest = torch.aminmax(flat)
    found.minimum, found.maximum = float(lowest), float(highest)
    found.zeros = float((flat == 0).count_nonzero()) / flat.numel()
    counts = Counter(flat.tolist())
    if len(counts) <= _CLASSES:
        found.counts = counts.most_common()


def _sample(values: Tensor) -> Tensor:
    flat = values.reshape(-1)
    return flat[:: -(-flat.numel() // _LOOKED_AT)]


def _repeated(values: Tensor) -> int:
    """How many rows are copies of one before; 0 where rows are too short to be told apart, or too many."""
    width = values[0].numel() * values.element_size() if values.dim() > 1 else 0
    if width < 16 or values.nbytes > _ROWS_LOOKED_AT:
        return 0
    rows: Any = values.to("cpu").contiguous().view(values.shape[0], -1).view(torch.uint8).numpy()
    return len(rows) - len({row.tobytes() for row in rows})
