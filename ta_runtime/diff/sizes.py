"""How far two records of one tensor are apart: in ulps of their own dtype, in norms, in blocks."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_QUANTISED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}  # whose integers are kept
_NUMERIC = re.compile(r"torch\.(bool|u?int(8|16|32|64)|b?float\d+|float8_\w+|complex\d+)")
_SHOWN = 3
_UNSURE = 1e-6  # of a norm


@dataclass(frozen=True, slots=True)
class Size:
    """Of two records of one tensor."""

    elements: int
    kept: int
    """How many of the elements both records keep; the figures from here to `factor` are of these."""
    differing: int
    ulps: int | None = None
    """The largest distance of two elements, in units in the last place: how many numbers of the dtype lie between."""
    largest: float | None = None
    """The same as an absolute difference."""
    relative: float | None = None
    """L2 norm of the difference, relative to that of A."""
    non_finite: int = 0
    """Elements that are finite in one record alone."""
    zeros: tuple[float, float] | None = None
    """The share of zeros in A and B, where they differ."""
    factor: float | None = None
    """B is A times this."""
    reordered: bool = False
    """Both have the same elements, in another order."""
    scalars: tuple[float, float] | None = None
    """The values themselves, of what has one element."""
    places: tuple[tuple[int, ...], ...] = ()
    """The first indices that differ, if all elements are kept."""
    rows: tuple[int, int] | None = None
    """How many entries of the first dimension differ, of how many, if all elements are kept."""
    norms: tuple[float, float] | None = None
    blocks: tuple[int, int] | None = None
    """How many of the tensor's blocks differ, of how many."""

    @property
    def complete(self) -> bool:
        return self.kept == self.elements

    @property
    def at_least(self) -> float | None:
        """A bound of the relative norm of the difference, from the norms of both: it is no less; None: they tell none."""
        if self.norms is None or not all(map(math.isfinite, self.norms)) or not self.norms[0]:
            return None
        bound = abs(self.norms[0] - self.norms[1]) / self.norms[0] - 2 * _UNSURE
        return bound if bound > 0 else None


def size(a: Mapping[str, Any], b: Mapping[str, Any]) -> Size | None:
    """How far two records are apart, rows of `schema.RECORDS`; None if they are of different dtype or shape, or no tensors."""
    if a["dtype"] is None or a["dtype"] != b["dtype"] or a["shape"] != b["shape"]:
        return None
    shape = tuple(a["shape"] or ())
    elements = math.prod(shape)
    norms = None if a["norm"] is None or b["norm"] is None else (a["norm"], b["norm"])
    blocks = None
    if a["blocks"] and b["blocks"] and len(a["blocks"]) == len(b["blocks"]):
        pairs = zip(a["blocks"], b["blocks"], strict=True)
        blocks = sum(one != other for one, other in pairs), len(a["blocks"])
    first, second = (decoded(row["values"], row["dtype"]) for row in (a, b))
    if first is None or second is None or len(first) != len(second) or not len(first):
        return Size(elements, 0, 0, norms=norms, blocks=blocks)
    unlike = first.view(torch.uint8).view(len(first), -1) != second.view(torch.uint8).view(len(first), -1)
    different = unlike.any(1)
    if first.is_complex():
        first, second = (torch.view_as_real(values).reshape(-1) for values in (first, second))
    places: tuple[tuple[int, ...], ...] = ()
    rows = None
    if len(different) == elements and elements:
        hits = different.reshape(shape).nonzero()
        places = tuple(tuple(hit) for hit in hits[:_SHOWN].tolist())
        rows = (len(set(hits[:, 0].tolist())), shape[0]) if shape else None
    return Size(
        elements,
        len(different),
        int(different.sum()),
        ulps=ulps(first, second),
        places=places,
        rows=rows,
        norms=norms,
        blocks=blocks,
        **_numbers(first, second),
    )


def decoded(values: bytes | None, dtype: str) -> Tensor | None:
    """The elements as they lay in memory; None of a dtype that has no numbers."""
    kind = getattr(torch, _QUANTISED.get(dtype, dtype), None)
    if (
        not values
        or not isinstance(kind, torch.dtype)
        or not _NUMERIC.fullmatch(str(kind))
        or len(values) % kind.itemsize
    ):
        return None
    return torch.frombuffer(bytearray(values), dtype=kind)


def ulps(a: Tensor, b: Tensor) -> int | None:
    """The largest distance of two elements, in numbers of their dtype; None for what is not of floating point, or NaN."""
    if not a.dtype.is_floating_point or a.dtype.itemsize not in _WORDS:
        return None
    regular = ~(a.isnan() | b.isnan()) if a.dtype.itemsize > 1 else ~(a.float().isnan() | b.float().isnan())
    words = [values[regular].view(_WORDS[a.dtype.itemsize]).tolist() for values in (a, b)]
    low = 1 << (8 * a.dtype.itemsize - 1)
    signed = "e8m0" not in str(a.dtype)

    def place(word: int) -> int:
        word %= 2 * low
        return low - word if signed and word >= low else word

    return max((abs(place(one) - place(other)) for one, other in zip(*words, strict=True)), default=None)


def _numbers(a: Tensor, b: Tensor) -> dict[str, Any]:
    whole = None
    if not a.is_floating_point():  # not all of int64 are numbers of float64
        whole = max(abs(one - other) for one, other in zip(a.tolist(), b.tolist(), strict=True))
    a, b = a.double(), b.double()
    finite = a.isfinite() & b.isfinite()
    one, other = a[finite], b[finite]
    found: dict[str, Any] = {"non_finite": int((a.isfinite() != b.isfinite()).sum())}
    if not len(one):
        return found
    gap = other - one
    norm = one.norm().item()
    found["scalars"] = (one.item(), other.item()) if len(a) == len(one) == 1 else None
    found["largest"] = gap.abs().max().item() if whole is None else float(whole)
    found["relative"] = gap.norm().item() / norm if norm else None
    shares = (one == 0).double().mean().item(), (other == 0).double().mean().item()
    found["zeros"] = shares if shares[0] != shares[1] else None
    found["reordered"] = (
        bool(gap.any()) and len(one) > 1 and torch.equal(one.sort().values, other.sort().values)
    )
    if norm and found["relative"] > 1e-4 and not found["non_finite"]:
        factor = ((one @ other) / (one @ one)).item()
        if (other - factor * one).norm().item() <= 1e-3 * other.norm().item():
            found["factor"] = factor
    return found
