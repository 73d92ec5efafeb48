"""Measures the numbers of a tensor that goes in or comes out."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import Value
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.measure.norms import summed_in

if TYPE_CHECKING:
    from ta_runtime.observers.window import Window


def measure_value(window: "Window", value: Value, tensor: Tensor, *, moments: bool) -> None:
    """Range, and with `moments` mean and standard deviation, of a tensor of real numbers."""
    tensor = local(tensor)
    real = tensor.is_floating_point() or tensor.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8)
    if not real or tensor.numel() == 0 or tensor.is_meta or tensor.layout is not torch.strided:
        return
    if tensor.is_floating_point() and not measurable(tensor):
        return
    lowest, highest = torch.aminmax(tensor)

    def deliver_range(values: list[float]) -> None:
        value.minimum, value.maximum = values

    window.readings.scalars([lowest, highest], deliver_range)
    if not moments or not tensor.is_floating_point():
        return
    count = tensor.numel()

    def deliver_moments(values: list[float]) -> None:
        total, value.norm = values
        value.mean = total / count
        value.std = max(value.norm**2 / count - value.mean**2, 0.0) ** 0.5

    # not std_mean: it costs 20 times as much on a CPU (torch 2.13)
    total = tensor.sum(dtype=torch.float32)
    norm = torch.linalg.vector_norm(tensor, dtype=summed_in(tensor.dtype))
    window.readings.scalars([total, norm], deliver_moments)
