"""TA203: matrix multiplications run in float32 and leave the tensor cores unused."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from ta_runtime.facts import LayerCall, Step, Suspicion

OF_STRUCTURE = True
SHARE = 0.5
"""The least share of the multiplications of a forward pass in such layers. Convolutional and recurrent layers are not
among them: cuDNN runs both in TF32 unless that is switched off."""
WORK = 1 << 30
"""The least multiplications of a forward pass: an A100 does them in 0.1 ms in float32 (19.5 TFLOPS, NVIDIA)."""


def check_step(step: Step) -> Iterator[Suspicion]:
    if not step.machine.has_tensor_cores or tf32_allowed():
        return
    for forward in step.training_forwards:
        if forward.autocast is not None:
            continue
        work = [(call, call.multiplications) for call in forward.calls]
        total = sum(count for _, count in work)
        full = sum(count for call, count in work if count and _is_full(call))
        if total >= WORK and full >= SHARE * total:
            message = "matrix multiplications in float32 leave tensor cores idle: use autocast to `bfloat16`, or TF32"
            yield Suspicion(
                forward.model.place, message, {"share of multiplications": round(full / total, 2)}
            )
            return


def tf32_allowed() -> bool:
    """Whether float32 matrix multiplications may use tensor cores, by any of the settings there are for it."""
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):  # torch < 2.9
        return bool(matmul.allow_tf32)
    # not `allow_tf32`: it raises where the newer setting was used
    chosen = matmul.fp32_precision
    general = getattr(torch.backends, "fp32_precision", "none")
    return chosen not in ("none", "ieee") or (chosen == "none" and general not in ("none", "ieee"))


def _is_full(call: LayerCall) -> bool:
    given = call.inputs[0]
    is_matrix = not isinstance(call.module, (_ConvNd, nn.RNNBase))
    return is_matrix and given.device.type == "cuda" and given.dtype is torch.float32
