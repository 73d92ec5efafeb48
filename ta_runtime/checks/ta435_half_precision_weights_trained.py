"""TA435: steps leave nearly all elements of half-precision weights unchanged, because they round to nothing."""

from collections.abc import Iterator

import torch
from torch import nn

from ta_runtime.facts import Refutation, Said, Step, Suspicion, Update
from ta_runtime.naming import Names

STEPS = 3
"""Looks one after another: the first steps of a warm-up pass."""
MOST = 0.8
"""The share that may stay unchanged: weights of dead units have no gradient."""
FEW = 0.5
WARM = 0.5
"""Of the learning rate that a scheduler began with: below it steps are meant to be small."""
_HALF = (torch.float16, torch.bfloat16)


def check_step(step: Step) -> Iterator[Said]:
    by_optimizer: dict[int, list[Update]] = {}
    moved = [update for update in step.updates if _counts(update)]
    tables = _tables(moved[0].optimizer.names) if moved else frozenset()
    for update in moved:
        if id(update.tensor) not in tables:
            by_optimizer.setdefault(id(update.optimizer.optimizer), []).append(update)
    for key, updates in by_optimizer.items():
        stayed = _stayed(updates)
        steps = step.history.streak(("TA435", key), stayed >= MOST)
        optimizer, evidence = updates[0].optimizer, {"unchanged": float(f"{stayed:.3g}")}
        if steps >= STEPS:
            message = "updates of half-precision weights are lost to rounding: keep the weights in float32"
            rate = {"learning rate": updates[0].learning_rate}
            yield Suspicion(optimizer.place, message, evidence | rate)
        elif stayed < FEW:
            because = f"a step changes {1 - stayed:.0%} of the elements in half precision"
            yield Refutation(optimizer.place, because, evidence, of_data=True)


def _counts(update: Update) -> bool:
    """Whether a step was to move all of a weight in half precision, by an optimizer of torch, which rounds to nearest."""
    return (
        update.changed is not None
        and update.tensor.dtype in _HALF
        and update.tensor.dim() > 1
        and bool(update.gradient)
        and not update.skipped
        and update.learning_rate > 0
        and type(update.optimizer.optimizer).__module__.startswith("torch.optim.")
        and update.learning_rate >= WARM * update.optimizer.initial_rate(update.tensor)
    )


def _tables(names: Names) -> frozenset[int]:
    """The weights of embeddings, by id: a step moves the rows of the words in its batch alone."""
    return frozenset(
        key
        for key, holders in names.holders().items()
        if any(isinstance(module, nn.Embedding) for _, module in holders)
    )


def _stayed(updates: list[Update]) -> float:
    """The share of elements that are as they were."""
    total = sum(update.tensor.numel() for update in updates)
    changed = sum((update.changed or 0.0) * update.tensor.numel() for update in updates)
    return 1 - changed / total
