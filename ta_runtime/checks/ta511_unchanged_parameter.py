"""TA511: steps with a learning rate and a gradient leave a parameter unchanged, to the last bit."""

from collections.abc import Iterator

import torch

from ta_runtime.facts import IDLE, Step, Suspicion, Update

STEPS = 3
"""Audited steps in a row: the first steps of a warm-up, and accumulating optimizers, are over by then."""
LEAST_GRADIENT = 1e-6
"""Over the norm of the weight. Below it training has converged, and nothing is to be moved."""
LEAST_STEP = 1e-6
"""Of the weight, for full precision: learning rate times gradient. Float32 rounds to 6e-8 of a value."""
WARM = 0.5
"""Of the learning rate that a scheduler began with: below it steps are meant to be small."""
_HALF = (torch.float16, torch.bfloat16)


def check_step(step: Step) -> Iterator[Suspicion]:
    moved = {id(update.optimizer) for update in step.updates if update.change}
    stuck: dict[tuple[int, bool], list[Update]] = {}
    for update in step.updates:
        if update.change is None or update.skipped:
            continue
        half = update.tensor.dtype in _HALF
        holds = update.change == 0.0 and _should_move(update)
        steps = step.history.streak(("TA511", id(update.tensor)), holds)
        idle = step.idle.get(id(update.optimizer.optimizer), 0)
        if steps >= STEPS and (half or id(update.optimizer) in moved or idle >= IDLE):
            stuck.setdefault((id(update.optimizer), half), []).append(update)
    for (_, half), updates in stuck.items():
        first = updates[0]
        message = (
            "steps leave these parameters unchanged despite gradients: check the learning rate and groups"
        )
        if half:
            message = "updates are lost to the rounding of half precision: keep the weights in float32"
        yield Suspicion(
            first.optimizer.place,
            message,
            {
                "parameters": len(updates),
                "first": first.parameter.name,
                "learning rate": first.learning_rate,
                "gradient norm": first.gradient or 0.0,
                "weight norm": first.weight or 0.0,
            },
            "half precision" if half else "",
        )


def _should_move(update: Update) -> bool:
    gradient, weight, rate = update.gradient, update.weight, update.learning_rate
    if not update.exact or gradient is None or weight is None or not rate > 0:
        return False
    if not gradient > LEAST_GRADIENT * weight or not gradient < float("inf"):
        return False
    if update.tensor.dtype not in _HALF:
        return rate * gradient > LEAST_STEP * weight
    return rate >= WARM * update.optimizer.initial_rate(update.tensor)
