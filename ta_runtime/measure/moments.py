"""Measures tensors on their device: many of one shape as one, large ones each by itself, block by block."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ta_runtime.measure.kinds import HALF, of_one_kind
from ta_runtime.measure.norms import in_order, norms

Needs = tuple[str, ...]
"""Fields of `statistics.PartialStatistics`, in a fixed order."""

FIELDS = ("mean", "centred", "norm", "magnitude", "highest", "lowest")
_LARGE = 1 << 17
_AS_IT_IS = {torch.float32, torch.float64}
_COMPLEX = {torch.complex64, torch.complex128, torch.complex32}
_NORMED = _AS_IT_IS | HALF | {torch.complex64, torch.complex128}
_OF_COMPLEX = {"norm", "magnitude"}

SPREAD: Needs = ("mean", "centred")
_WIDEST, _NARROWEST = 1 << 10, 1 << 8
_LONGEST = 1 << 9  # rows of a block, whose sums are single precision: these are right to 5 digits at worst

_of_columns = getattr(torch, "batch_norm_update_stats", None)  # not documented: with a fallback


def ordered(needs: set[str]) -> Needs:
    return tuple(field for field in FIELDS if field in needs)


def countable(tensor: Tensor, needs: Needs) -> bool:
    """Whether there are values to measure, and of a kind of which this can be measured."""
    if not tensor.numel() or tensor.is_meta or tensor.layout is not torch.strided or tensor.is_quantized:
        return False
    return tensor.dtype not in _COMPLEX or _OF_COMPLEX.issuperset(needs)


def in_rows(tensors: Tensor, needs: Needs) -> list[Tensor]:
    """What is needed of each of the tensors that were stacked, `[n, ...]`, which are lost: a vector `[n]` for each quantity."""
    rows = tensors.reshape(len(tensors), -1)
    if rows.dtype not in _AS_IT_IS:
        rows = _widened(rows)
    found: dict[str, Tensor] = {}
    if "mean" in needs:
        found["mean"] = rows.mean(1)
    if "norm" in needs:
        found["norm"] = torch.linalg.vector_norm(rows, dim=1)
    if "magnitude" in needs:
        found["magnitude"] = rows.abs().mean(1)
    if "highest" in needs:
        found["highest"] = rows.amax(1)
    if "lowest" in needs:
        found["lowest"] = rows.amin(1)
    if "centred" in needs:  # last, as it writes to them
        found["centred"] = torch.linalg.vector_norm(rows.sub_(found["mean"].unsqueeze(1)), dim=1)
    return [found[field] for field in needs]


def blocks(tensor: Tensor) -> Sequence[Tensor]:
    """What a tensor of the CPU is as matrices of many columns, in any order; nothing if it lies otherwise in memory."""
    width = math.gcd(tensor.numel(), _WIDEST)
    if _of_columns is None or tensor.device.type != "cpu" or width < _NARROWEST:
        return ()
    tensor = in_order(tensor)
    if not tensor.is_contiguous():
        return ()
    if tensor.dtype not in _AS_IT_IS:
        tensor = _widened(tensor)
    return torch.split(tensor.view(-1, width), _LONGEST)


def of_columns(block: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each column of a block, and the mean square of what is left without it.

    The CPU takes half as long for both as for a mean and a norm of the whole, and writes nothing: there is no better
    operation in torch (2.13), whose `std` takes 7 times as long, and `var_mean` 50 times.
    """
    assert _of_columns is not None
    means, squares = _of_columns(block, None, None, 0.0)
    return means, squares


def of_blocks(rows: int, columns: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """What is needed for the `SPREAD` of each of several blocks of one shape: two vectors (Chan et al. 1979)."""
    means, squares = (torch.stack(vectors) for vectors in zip(*columns, strict=True))
    mean = means.mean(1)
    between = torch.linalg.vector_norm(means.sub_(mean.unsqueeze(1)), dim=1)
    return mean, torch.hypot(squares.sum(1).sqrt_(), between).mul_(math.sqrt(rows))


def of_one(tensor: Tensor, needs: Needs) -> list[Tensor]:
    """The same of one tensor: a tensor of no dimension for each quantity."""
    if tensor.dtype not in _AS_IT_IS and (tensor.dtype not in HALF or needs != ("norm",)):
        tensor = _widened(tensor)
    found: dict[str, Tensor] = {}
    if "mean" in needs:
        found["mean"] = tensor.mean()
    if "centred" in needs:
        (found["centred"],) = norms([tensor - found["mean"]], large=_LARGE)
    if "norm" in needs:
        (found["norm"],) = norms([tensor], large=_LARGE)
    if "magnitude" in needs:
        found["magnitude"] = tensor.abs().mean()
    if "highest" in needs:
        found["highest"] = tensor.amax()
    if "lowest" in needs:
        found["lowest"] = tensor.amin()
    return [found[field] for field in needs]


def of_each(tensors: Sequence[Tensor], needs: Needs) -> list[list[Tensor]]:
    """The same of each of several tensors; norms of whatever devices and dtypes in few operations."""
    if needs != ("norm",):
        return [of_one(tensor, needs) for tensor in tensors]
    results: list[list[Tensor]] = [[] for _ in tensors]
    for indices in of_one_kind(tensors):
        group = [tensors[index] for index in indices]
        if group[0].dtype not in _NORMED:
            group = [_widened(tensor) for tensor in group]
        for index, norm in zip(indices, norms(group, large=_LARGE), strict=True):
            results[index] = [norm]
    return results


def _widened(tensor: Tensor) -> Tensor:
    """In single precision at least; whole numbers in double, which holds those up to 2**53."""
    if tensor.dtype in _COMPLEX:
        return tensor.to(torch.complex64) if tensor.dtype is torch.complex32 else tensor
    return tensor.to(torch.float32 if tensor.is_floating_point() else torch.float64)
