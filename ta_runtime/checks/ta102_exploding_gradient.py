"""TA102: the global gradient norm is far above its running median, and above all earlier norms."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Gradients, Suspicion

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
