"""Norms of tensors on their device: in bulk, with as many digits as their dtype has; or exact to 1e-6, summed in float64.

All give tensors without waiting for them.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ta_runtime.measure.kinds import HALF, SINGLE

_LARGE = 1 << 19
_ROW, _FEW, _MANY = 1 << 10, 1 << 6, 1 << 12
_CHUNK = 1 << 18  # elements whose squares are summed at once in float64
_TINY = (
    1e-8  # a norm of which float32 may have lost a part, as squares of less than 1e-19 are no normal numbers
)

_foreach_norm = getattr(torch, "_foreach_norm", None)  # not public: with a fallback


def summed_in(dtype: torch.dtype) -> torch.dtype | None:
    """The `dtype` argument of a norm or sum: half precision is summed in float32, all else in its own dtype."""
    return torch.float32 if dtype in HALF else None


def norms(
    tensors: Sequence[Tensor], order: float = 2.0, dtype: torch.dtype | None = None, large: int = _LARGE
) -> Sequence[Tensor]:
    """The norm of each of several `measurable` tensors of any shapes on one device, each as a tensor of no dimension.

    Args:
        tensors: of one dtype, unless `dtype` is given.
        order: 2 for L2; 0 counts the elements that are not zero.
        dtype: to sum in, and of the results; by default `summed_in`, with real results of complex tensors.
        large: tensors of so many elements and more are right to 6 digits on a CPU too, at the price of some operations
            for each: blocked summation, as in Higham, "The accuracy of floating point summation" (1993).
    """
    dtype = dtype or summed_in(tensors[0].dtype)
    if tensors[0].device.type == "cpu" and max(map(Tensor.numel, tensors)) >= large:
        small = [tensor for tensor in tensors if tensor.numel() < large]
        of_small = iter(norms(small, order, dtype) if small else ())
        return [
            next(of_small) if tensor.numel() < large else _in_rows(tensor, order, dtype) for tensor in tensors
        ]
    if _foreach_norm is not None:
        found: Sequence[Tensor] = _foreach_norm(tensors, order, dtype=dtype)
        return found
    return [torch.linalg.vector_norm(tensor, order, dtype=dtype) for tensor in tensors]


def row_norms(stacked: Tensor, order: float = 2.0) -> Tensor:
    """The norms of tensors that were stacked, `[n, ...]`, as one vector `[n]`; half precision is summed in float32."""
    rows = stacked.reshape(len(stacked), stacked.shape[1:].numel())
    found: Tensor = torch.linalg.vector_norm(rows, order, dim=1, dtype=summed_in(stacked.dtype))
    return found


def in_order(tensor: Tensor) -> Tensor:
    """A tensor with its dimensions in the order in which it lies in memory."""
    if tensor.is_contiguous():
        return tensor
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def _in_rows(tensor: Tensor, order: float, dtype: torch.dtype | None) -> Tensor:
    """The norm of the norms of rows, or their sum where these are numbers of elements.

    A CPU adds up the squares of a whole tensor in a few sums of its dtype, which takes no less time: in single precision
    the norm of 64 Mi elements is wrong by 0.5 %, and that of 256 Ki equal ones by 0.01 % (torch 2.13).
    """
    tensor = in_order(tensor).contiguous()
    count, width = tensor.numel(), tensor.shape[-1]
    rest = None
    if not _FEW < width < _MANY or count // width > _MANY:
        values, odd = tensor.view(-1), count % _ROW
        tensor = (values[:-odd] if odd else values).view(-1, _ROW)
        rest = values[-odd:] if odd else None
    rows = torch.linalg.vector_norm(tensor, order, dim=-1, dtype=dtype)
    if rest is not None:
        last = torch.linalg.vector_norm(rest, order, dim=0, keepdim=True, dtype=dtype)
        rows = torch.cat((rows, last))
    if not order:
        total: Tensor = rows.sum()
        return total
    if rows.numel() > _MANY:
        return _in_rows(rows, order, None)
    norm: Tensor = torch.linalg.vector_norm(rows, order)
    return norm


# -- right to 1e-6, whatever the size and the dtype -----------------------------------------------------------


def exact_norm(flat: Tensor) -> Tensor | None:
    """The L2 norm of a flat tensor `[n]` of any dtype as one float64 `[1]` on its device, summed in float64.

    None of a dtype that has no numbers.
    """
    numbers = torch.view_as_real(flat).view(-1) if flat.is_complex() else flat
    try:
        room = torch.empty(min(len(numbers), _CHUNK), dtype=torch.float64, device=flat.device)
        squares = []
        for part in torch.split(numbers, _CHUNK):
            doubled = room[: len(part)].copy_(part)
            squares.append(torch.dot(doubled, doubled))
    except (RuntimeError, TypeError):
        return None
    return torch.stack(squares).sum().sqrt().view(1)


def host_norm(flat: Tensor, rows: Sequence[Tensor]) -> float | None:
    """The L2 norm of a flat tensor `[n]` on the CPU, from its `short_row_norms` if there are any; None as of `exact_norm`."""
    if rows:
        doubled = torch.cat(list(rows)).double()
        norm = math.sqrt(torch.dot(doubled, doubled))
        if _TINY < norm < math.inf:
            return norm
    found = exact_norm(flat)
    return float(found[0]) if found is not None else None


def short_row_norms(numbers: Tensor) -> Iterator[Tensor]:
    """The norms of rows of `_ROW` elements of a flat tensor `[n]` that `as_single` gave, in float32, and that of the rest.

    Over a whole tensor float32 would be wrong by a part in a thousand; over a row it is by less than 1e-6.
    """
    whole = len(numbers) // _ROW * _ROW
    for part in (numbers[:whole].view(-1, _ROW), numbers[whole:].view(1, -1)):
        if part.numel():
            yield row_norms(part)


def as_single(flat: Tensor) -> Tensor | None:
    """A flat tensor as numbers whose squares can be summed in float32; None if they cannot."""
    numbers = torch.view_as_real(flat).view(-1) if flat.dtype is torch.complex64 else flat
    return numbers if numbers.dtype in SINGLE else None
