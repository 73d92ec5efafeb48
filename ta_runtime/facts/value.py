"""A tensor that passed by, as a fact."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True)
class Value:
    """A tensor that passed by: what it is, and, where it was measured, what is in it.

    `minimum` and `maximum` of integers and of float model inputs; `mean` and `std` of float model inputs, computed from
    sums in float32: a `std` below a thousandth of the mean is not exact;
    `norm` is the L2 norm, not finite when an element is not (or when squares overflow, above about 1e19 in float32).
    For a class-index target, `minimum` and `maximum` leave out its `ignore_index`.
    """

    name: str
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool = False
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    norm: float | None = None
    channels_last: bool = False
    """Whether 4 dimensions lie in memory as NHWC, as those with one channel or one pixel also do."""
    part: int | None = None
    """How many elements of a sharded tensor this rank holds, which `norm` is of; None for one that is not sharded."""
    viewed: "Value | None" = None
    """The input of the forward pass whose elements this views, all of them, in another shape or order."""

    @classmethod
    def of(cls, name: str, tensor: Tensor) -> "Value":
        # a nested tensor has one size that all its parts share: how many they are
        shape = torch.Size((tensor.size(0),)) if tensor.is_nested else tensor.shape
        value = cls(name, shape, tensor.dtype, tensor.device, tensor.requires_grad)
        if len(value.shape) == 4 and tensor.layout is torch.strided:
            value.channels_last = tensor.is_contiguous(memory_format=torch.channels_last)
        return value

    @property
    def numel(self) -> int:
        return self.shape.numel()

    @property
    def measured(self) -> int:
        """How many elements `norm` is of."""
        return self.numel if self.part is None else self.part
