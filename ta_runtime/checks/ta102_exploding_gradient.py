"""TA102: the global gradient norm is far above its running median, and above all earlier norms."""

import math
from collections.abc import Iterator
from statistics import median_low

from ta_runtime.facts import Gradients, Step, Suspicion

LEAST = 50
"""Steps before a run's own norms say what is usual."""
FACTOR = 30.0
"""How many times the running median is a spike.

Measured: after the warm-up no norm of the healthy runs in `tests/runs` is above 3 times the median before it.
"""
SPREADS = 8.0
"""How many median absolute deviations of the logarithm it must be away as well, so that a noisy run is not accused.

Of normally distributed logarithms, 12 are 8 standard deviations.
"""
LARGE = 100.0
"""A norm that is large in a trial, which has none to compare it with, as torch-audit has it. A loss that is a sum has such a
norm and a rate to go with it, so it must also do harm:"""
MOVED = 0.25
"""the update's norm over the weight's, of most weights. What is healthy stays at or below 0.22 (TA107)."""


def check_gradients(gradients: Gradients) -> Iterator[Suspicion]:
    norm = gradients.before_clipping or gradients.total
    usual = gradients.optimizer.history.log_norms
    if norm is None or not math.isfinite(norm) or norm <= 0 or usual.count < LEAST or gradients.skipped:
        return
    logarithm = math.log(norm)
    if (
        logarithm <= usual.highest
    ):  # a batch that a converged run has not learned has a norm like those at the start
        return
    middle, spread = usual.usual
    distance = logarithm - middle
    if distance > math.log(FACTOR) and distance > SPREADS * spread:
        message = "the gradient norm jumps far above what is usual in this run: clip it by `clip_grad_norm_`"
        evidence = {"norm": norm, "usual norm": math.exp(middle)}
        yield Suspicion(gradients.place, message, evidence)


def check_trial(step: Step) -> Iterator[Suspicion]:
    for gradients in step.gradients:
        norm = gradients.total
        if norm is None or not LARGE < norm < math.inf or gradients.skipped:
            continue
        optimizer = gradients.optimizer.optimizer
        ratios = [
            ratio
            for update in step.updates
            if update.optimizer.optimizer is optimizer and (ratio := update.ratio) is not None
        ]
        if ratios and (moved := median_low(ratios)) > MOVED:
            message = "the gradient norm is large, and this step changes the weights by much: clip it by `clip_grad_norm_`"
            yield Suspicion(gradients.place, message, {"norm": norm, "median update over weight": moved})
