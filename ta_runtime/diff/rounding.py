"""Which records of two runs are equal but for rounding: for digests that cannot be compared, and for a tolerance."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from ta_runtime.diff.sizes import decoded

TOLERANCES = {
    "float64": 1e-7,
    "complex128": 1e-7,
    "float32": 1.3e-6,
    "complex64": 1.3e-6,
    "float16": 1e-3,
    "bfloat16": 1.6e-2,
}
"""The relative difference up to which numbers of devices that round differently count as equal: those of `torch.testing`."""

_EXACT = {"float64", "complex128"}
_SUMMED, _SUMMED_SINGLY = 1e-12, 1e-6  # by which norms may differ that were summed in another way


def close(a: pa.Table, b: pa.Table, tolerance: float | None) -> tuple[pa.Array, pa.Array]:
    """Of each row of two tables of `dtype`, `norm` and `values`, whether both are equal but for rounding, and whether
    that can be told, as both keep elements.

    The norm of the difference of the elements that are kept, and the difference of the norms, may be at most `tolerance`,
    relative to those of A; None: that of `TOLERANCES`, and 0 for other dtypes.
    """
    near = torch.zeros(len(a), dtype=torch.bool)
    words = a["dtype"].cast(pa.string())
    alike = pc.fill_null(pc.equal(pc.binary_length(a["values"]), pc.binary_length(b["values"])), False)
    for dtype in pc.unique(words).to_pylist():
        rows = pc.indices_nonzero(pc.and_(alike, pc.equal(words, dtype))).cast(pa.int64())
        limit = TOLERANCES.get(dtype, 0.0) if tolerance is None else tolerance
        if len(rows):
            near[_numbers(rows, torch.int64)] = _near(a.take(rows), b.take(rows), dtype, limit)
    told = pc.and_(pc.is_valid(a["values"]), pc.is_valid(b["values"])).combine_chunks()
    return pa.array(near.tolist(), pa.bool_()), told


def _near(a: pa.Table, b: pa.Table, dtype: str, limit: float) -> Tensor:
    """The same of rows of one dtype, of which both tables keep as many elements."""
    norm_a, norm_b = (_numbers(pc.fill_null(table["norm"], math.nan), torch.float64) for table in (a, b))
    near = (norm_a - norm_b).abs() <= max(
        limit, _SUMMED if dtype in _EXACT else _SUMMED_SINGLY
    ) * norm_a.abs()
    near |= (norm_a == norm_b) | (norm_a.isnan() & norm_b.isnan())
    (kept_a, lengths), (kept_b, _) = (_kept(table["values"]) for table in (a, b))
    one, other = decoded(kept_a, dtype), decoded(kept_b, dtype)
    if one is None or other is None:  # it has no numbers
        return near & torch.tensor(pc.equal(a["values"], b["values"]).to_pylist())
    rows = torch.arange(len(lengths)).repeat_interleave(lengths // one.dtype.itemsize)
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
        rows = rows.repeat_interleave(2)
    one, other = one.double().flatten(), other.double().flatten()
    odd = (one != other) & ~(one.isnan() & other.isnan()) & ~(one.isfinite() & other.isfinite())
    gap = torch.nan_to_num(other - one, nan=0.0, posinf=0.0, neginf=0.0)
    one = torch.nan_to_num(one, nan=0.0, posinf=0.0, neginf=0.0)
    zero = torch.zeros(len(lengths), dtype=torch.float64)
    norms = [zero.index_add(0, rows, values**2).sqrt() for values in (gap, one)]
    return near & (norms[0] <= limit * norms[1]) & (zero.index_add(0, rows, odd.double()) == 0)


def _kept(column: pa.ChunkedArray) -> tuple[bytes, Tensor]:
    """The bytes of all rows, one after the other, and how many each has."""
    rows = pc.fill_null(column, b"").combine_chunks()
    together = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    return pc.binary_join(together, b"")[0].as_py(), _numbers(pc.binary_length(rows), torch.int32).long()


def _numbers(column: pa.Array | pa.ChunkedArray, dtype: torch.dtype) -> Tensor:
    """A column of numbers without nulls as a tensor."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(bytearray(array.buffers()[1]), dtype=dtype)[array.offset :][: len(array)]
