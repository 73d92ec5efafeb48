"""TA107: a step changes most weights by as much as their own size, or by less than their last digit."""

import math
from collections.abc import Iterator
from statistics import median_low

import torch

from ta_runtime.facts import Optimizer, Step, Suspicion, Update
from ta_runtime.facts.history import SMALL

LARGE = 1.0
"""The update's norm over the weight's. Healthy is about 1e-3 (Karpathy, makemore).

Measured: at most 0.1 in the healthy runs in `tests/runs` that have more than one layer; 0.22 at the first step of AdamW
with a learning rate of 1e-3 on a weight of 16,384 inputs.
"""
ROW = 0.1
"""Weights with rows of a smaller norm were made small on purpose (LoRA, last layers of diffusion and policy networks),
and grow by more than themselves. Glorot's, He's and torch's own initialisations have rows of 0.5 to 1.5; GPT-2's of 0.2."""
LAYERS = 2
"""Fewer weights of that size are a linear model, which may go to its solution in one step."""
SAMPLE = 4096
"""Elements of a large weight that an `Update` is about."""


def check_step(step: Step) -> Iterator[Suspicion]:
    by_optimizer: dict[int, list[tuple[float, Update]]] = {}
    for update in step.updates:
        if (ratio := update.ratio) is not None:
            by_optimizer.setdefault(id(update.optimizer.optimizer), []).append((ratio, update))
    for updates in by_optimizer.values():
        optimizer = updates[0][1].optimizer
        if isinstance(optimizer.optimizer, torch.optim.LBFGS):  # it searches for its step along a line
            continue
        if any(ratio > LARGE for ratio, _ in updates):
            ratios = [ratio for ratio, update in updates if _is_full(update)]
            if len(ratios) >= LAYERS and (usual := median_low(ratios)) > LARGE:
                message = "a step changes most weights by more than their size: check the learning rate and its warm-up"
                yield Suspicion(optimizer.place, message, _evidence(usual, updates), variant="large")
        elif _is_always_small(optimizer, step):
            usual = median_low(ratio for ratio, _ in updates)
            if usual <= SMALL:
                message = (
                    "steps are too small to change the weights: check `lr` and what the schedule makes of it"
                )
                yield Suspicion(optimizer.place, message, _evidence(usual, updates), variant="small")


def _is_full(update: Update) -> bool:
    """Whether its weight is of the size that initialisations give."""
    count = update.tensor.numel()
    if update.weight is None or not count:
        return False
    seen = count if update.exact else min(count, SAMPLE)
    inputs = count / len(update.tensor)
    return update.weight * math.sqrt(inputs / seen) >= ROW


def _is_always_small(optimizer: Optimizer, step: Step) -> bool:
    still = optimizer.history.stands_still(step.index, scheduled=optimizer.is_scheduled)
    return still and bool(step.gradients)


def _evidence(usual: float, updates: list[tuple[float, Update]]) -> dict[str, float | int | str]:
    return {"median update over weight": usual, "weights": len(updates), "lr": updates[0][1].learning_rate}
