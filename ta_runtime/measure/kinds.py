"""Which tensors can be measured, and which of them together."""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from operator import attrgetter

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

HALF = {torch.float16, torch.bfloat16}
SINGLE = {torch.float32, *HALF}
"""What is summed in float32."""
DOUBLE = {torch.float64}
_MEASURABLE = SINGLE | DOUBLE | {torch.complex64, torch.complex128}
SHAPE, DTYPE, DEVICE = attrgetter("shape"), attrgetter("dtype"), attrgetter("device")
LAYOUT = attrgetter("layout")
_TYPES = (Tensor, nn.Parameter, nn.Buffer)

SMALL = 1 << 14
"""Elements below which a further operation costs more than a copy of the tensor."""


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a distributed tensor, any other as it is. Call it under `torch.no_grad()`."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def measurable(tensor: Tensor) -> bool:
    """Whether a norm of it can be taken as it is: dense, filled, real or complex floating point of 16 bits or more."""
    return (
        tensor.dtype in _MEASURABLE
        and type(tensor) in _TYPES
        and tensor.layout is torch.strided
        and not (tensor.is_meta or tensor.is_nested)
    )


def alike(tensors: Sequence[Tensor], kinds: Sequence[Hashable] = ()) -> list[list[int]]:
    """Which tensors have one shape, dtype and device, by index: stacked, they cost as many operations as one.

    With `kinds`, one of each tensor, those of a group have that in common too.
    """
    features = (map(SHAPE, tensors), map(DTYPE, tensors), map(DEVICE, tensors))
    return [list(group) for group in _grouped(*map(tuple, features), tuple(kinds))]


def of_one_kind(tensors: Sequence[Tensor]) -> list[list[int]]:
    """Which tensors have one dtype and device, by index: one vector can hold what is measured of them."""
    return _grouped(tuple(map(DTYPE, tensors)), tuple(map(DEVICE, tensors)))


@lru_cache(64)
def _grouped(*features: tuple[Hashable, ...]) -> list[list[int]]:
    """Kept, as the tensors of a step are mostly those of the step before."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(zip(*filter(None, features), strict=True)):
        groups.setdefault(key, []).append(index)
    return list(groups.values())
