"""TA201: two-dimensional convolutions in half precision run on NCHW tensors, while tensor cores need NHWC."""

from collections.abc import Iterator

import torch
from torch import nn

from ta_runtime.facts import LayerCall, Step, Suspicion

OF_STRUCTURE = True
SHARE = 0.5
"""The least share of the multiplications of a forward pass that runs in such convolutions."""
WORK = 1 << 30
"""The least multiplications of a forward pass: an A100 does them in 7 microseconds (312 TFLOPS in half precision,
NVIDIA), about what it takes to start one operation."""

_HALF = (torch.float16, torch.bfloat16)


def check_step(step: Step) -> Iterator[Suspicion]:
    if not step.machine.has_tensor_cores:
        return
    for forward in step.training_forwards:
        found = [call for call in forward.calls if _is_channels_first(call, forward.autocast)]
        total = sum(call.multiplications for call in forward.calls) if found else 0
        if total >= WORK and sum(call.multiplications for call in found) >= SHARE * total:
            message = (
                "convolutions run slowly on channels-first tensors: use `memory_format=torch.channels_last`"
            )
            yield Suspicion(forward.model.place, message, {"convolutions": len(found)})


def _is_channels_first(call: LayerCall, autocast: torch.dtype | None) -> bool:
    """Neither the input nor the weight is channels-last: either one is enough for cuDNN to run in that order."""
    module = call.module
    if not isinstance(module, nn.Conv2d) or module.groups > 1 or not call.inputs:
        return False
    given = call.inputs[0]
    if len(given.shape) != 4 or given.channels_last:
        return False
    weight = module.weight
    asks = weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()
    half = autocast in _HALF or given.dtype in _HALF
    return given.device.type == "cuda" and half and not asks
