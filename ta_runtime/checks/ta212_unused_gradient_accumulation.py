"""TA212: each step learns from a few samples, because no more fit into device memory, without accumulation."""

from collections.abc import Iterator

import torch

from ta_runtime.facts import Forward, Step, Suspicion, Value

FEW = 4
"""Samples to a step: below this, gradients of one step and the next hardly agree (McCandlish et al. 2018
measure useful batches of tens for the easiest of tasks)."""

FULL = 0.8
"""The share of the device's memory from which on a batch of twice the size does not fit, or hardly."""


def check_step(step: Step) -> Iterator[Suspicion]:
    if len(step.training_forwards) != 1:
        return
    [forward] = step.training_forwards
    samples = _samples(forward)
    once = [gradients for gradients in step.gradients if gradients.backwards == 1]
    if not once or not 0 < samples <= FEW or forward.model.data_parallel:
        return
    memory = step.machine.peak_memory
    if memory is None or memory < FULL:
        return
    for gradients in once:
        message = (
            "the device is full at a small batch, which makes steps noisy: accumulate gradients over batches"
        )
        yield Suspicion(gradients.place, message, {"samples": samples, "memory share": memory})


def _samples(forward: Forward) -> int:
    """How many samples, or positions of sequences, a pass computes a loss from; 0 where that is not known."""
    return max(map(_rows, forward.inputs), default=0)


def _rows(value: Value) -> int:
    if not value.shape:
        return 0
    sequences = len(value.shape) == 3 or (len(value.shape) == 2 and not _is_real(value.dtype))
    return value.shape[0] * value.shape[1] if sequences else value.shape[0]


def _is_real(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex
