"""TA617: gradients that nothing clips are sometimes far larger than usual."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Gradients, Refutation, Said, Suspicion, Unobserved

LEAST = 50
"""Steps before a run's own norms say what is usual."""
LARGE = 10.0
"""Factor above the usual norm, and above all norms before: limits are usually set at a few times the usual norm."""
SPREADS = 8.0
"""How many median absolute deviations of the logarithm it must be away as well, so that a noisy run is not accused."""
WITHIN = 3.0
"""How many times the usual norm leaves a clipping nothing to do.

Measured: after the warm-up few norms of the healthy runs in `tests/runs` are above 3 times the median before them.
"""


def check_gradients(gradients: Gradients) -> Iterator[Said]:
    usual = gradients.optimizer.history.log_norms
    norm = gradients.total
    if norm is None or not math.isfinite(norm) or norm <= 0 or gradients.skipped:
        return
    if gradients.before_clipping is not None:
        return
    if usual.count < LEAST:
        yield Unobserved(gradients.place, f"fewer than {LEAST} steps, which say what norm is usual")
        return
    middle, spread = usual.usual
    logarithm = math.log(norm)
    distance = logarithm - middle
    if distance > math.log(LARGE) and distance > SPREADS * spread and logarithm > usual.highest:
        message = "a step follows a gradient far larger than usual: clip gradients before the step"
        yield Suspicion(gradients.place, message, {"norm": norm, "usual norm": math.exp(middle)})
    elif max(logarithm, *usual.values) - middle < math.log(WITHIN):
        largest = math.exp(max(logarithm, *usual.values))
        evidence = {"largest norm": largest, "usual norm": math.exp(middle)}
        because = f"no gradient norm is above {WITHIN:g} times the usual {math.exp(middle):.3g}"
        yield Refutation(gradients.place, because, evidence, of_data=True)
