"""TA200: large layers with a dimension that is not a multiple of 8, in half precision on tensor cores."""

from collections import defaultdict
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from ta_runtime.facts import LayerCall, Step, Suspicion
from ta_runtime.probes.places import Place

OF_STRUCTURE = True
MULTIPLE = 8
"""Elements of half precision in 16 bytes, what tensor cores load at once: NVIDIA, Matrix Multiplication
Background User's Guide, "Requirements to Use Tensor Cores"."""
LARGE = 64
"""The least size of a dimension that padding to the next multiple makes at most an eighth larger. Smaller ones, such
as the 3 channels of an image or the 10 classes of a head, are set by the data."""
SHARE = 0.05
"""The least share of the multiplications of a forward pass: with less, the step would hardly get faster."""
WORK = 1 << 28
"""The least multiplications of a call: an A100 does them in 2 microseconds (312 TFLOPS in half precision, NVIDIA),
less than it takes to start the operation."""

_HALF = (torch.float16, torch.bfloat16)


def check_step(step: Step) -> Iterator[Suspicion]:
    if not step.machine.has_tensor_cores:
        return
    for forward in step.training_forwards:
        found = [
            call for call in forward.calls if _misaligned(call.module) and _is_half(call, forward.autocast)
        ]
        enough = SHARE * sum(call.multiplications for call in forward.calls) if found else 0
        places: dict[Place, dict[str, LayerCall]] = defaultdict(dict)
        shares: dict[Place, int] = defaultdict(int)
        for call in found:
            if call.multiplications >= WORK:
                layer = call.layer
                places[layer.place][layer.name] = call
                shares[layer.place] += call.multiplications
        for place, calls in places.items():
            if shares[place] >= enough:
                name, call = next(iter(calls.items()))
                kind = type(call.module).__name__
                message = f"`{kind}` runs slowly, as a size is not a multiple of {MULTIPLE}: pad it to one"
                sizes = "x".join(map(str, _sizes(call.module)))
                yield Suspicion(place, message, {"layers": len(calls), "first": name, "sizes": sizes})


def _is_half(call: LayerCall, autocast: torch.dtype | None) -> bool:
    return any(
        given.device.type == "cuda" and (autocast in _HALF or given.dtype in _HALF)
        for given in call.inputs[:1]
    )


def _misaligned(module: nn.Module) -> bool:
    sizes = _sizes(module)
    return any(size % MULTIPLE for size in sizes) and all(size >= LARGE for size in sizes)


def _sizes(module: nn.Module) -> tuple[int, ...]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    if isinstance(module, _ConvNd) and module.groups == 1:
        return module.in_channels, module.out_channels
    return ()
