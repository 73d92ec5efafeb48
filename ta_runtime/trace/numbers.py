"""What a trace says of what a tensor holds: one number."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ta_runtime.faults import keep
from ta_runtime.measure.digests import (
    Weights,
    copied,
    fetched,
    number_of,
    pieces,
    row_length,
    shape_of,
    signed,
)
from ta_runtime.measure.memory import memory

_PLAIN = {Tensor, torch.nn.Parameter, torch.nn.Buffer}


def numbers(tensors: Sequence[Tensor | None], *, wait: bool = True) -> list[int | None]:
    """One signed 64-bit number for each tensor, equal if all bits, the dtype and the shape are.

    Those on devices come over in one copy from each, which is waited for, or are left out unless `wait`. None: of a tensor
    without memory to read, and of None. Never raises.
    """
    found: list[int | None] = []
    late: list[tuple[int, int, Tensor]] = []
    for index, tensor in enumerate(tensors):
        number = None
        if tensor is not None:
            try:
                plain = type(tensor) in _PLAIN and tensor.layout is torch.strided and tensor.is_contiguous()
                if (
                    plain
                    and tensor.is_cpu
                    and not (tensor.is_neg() or tensor.is_conj() or tensor.is_quantized)
                ):
                    number = signed(memory(tensor), _outline(tensor.dtype, tensor.shape))
                else:
                    number = _of_pieces(tensor, late, index, wait)
            except Exception as error:  # noqa: BLE001 - a subclass may do anything when asked
                keep(error)
                number = None
        found.append(number)
    if late:
        for (index, seed, _), sums in zip(late, fetched([sums for *_, sums in late]), strict=True):
            found[index] = signed(memory(sums), seed)
    return found


def combined(digests: Sequence[int | None]) -> int | None:
    """The number of several tensors together; None if there are none, or one of them has none."""
    if len(digests) < 2 or None in digests:
        return digests[0] if len(digests) == 1 else None
    return signed(b"".join((each or 0).to_bytes(8, "little", signed=True) for each in digests), len(digests))


def number_of_zeros(tensor: Tensor) -> int:
    """The number of a tensor like this one that is all zeros: of a float, of zeros without a sign."""
    return _number_of_zeros(tensor.dtype, tensor.shape, tensor.is_cpu)


@torch.no_grad()
def _of_pieces(tensor: Tensor, late: list[tuple[int, int, Tensor]], index: int, wait: bool) -> int | None:
    with torch._C.DisableTorchFunctionSubclass():
        parts = pieces(tensor)
        shape = shape_of(tensor)
    seed = _seed(tensor.dtype, tuple(shape or ()))
    if all(part.device.type == "cpu" for part in parts):
        return signed(memory(parts[0]) if len(parts) == 1 else b"".join(map(copied, parts)), seed)
    if wait:
        late.append((index, seed, torch.cat([_weights().sums(part)[0].view(-1) for part in parts])))
    return None


@lru_cache(maxsize=1)
def _weights() -> Weights:
    return Weights()


@lru_cache(maxsize=65536)
def _outline(dtype: torch.dtype, shape: torch.Size) -> int:
    """What a number begins with."""
    return _seed(dtype, tuple(shape))


def _seed(dtype: torch.dtype, shape: tuple[int, ...]) -> int:
    return number_of(memoryview(f"{dtype} {shape}".encode()))


@lru_cache(maxsize=65536)
def _number_of_zeros(dtype: torch.dtype, shape: torch.Size, on_host: bool) -> int:
    size = shape.numel() * dtype.itemsize
    if not on_host:  # of each row of words two sums
        words = -(-size // 4)
        size = 16 * max(-(-words // row_length(words)), 1)
    return signed(bytes(size), _seed(dtype, tuple(shape)))
