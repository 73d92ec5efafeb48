"""TA112: a gradient flows through a root of zero, or an angle at its edge, and is infinite or NaN."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Expression, Refutation, Said, Step, Suspicion


def check_step(step: Step) -> Iterator[Said]:
    for expression in step.expressions:
        distance = _distance(expression) if expression.recorded else None
        if distance is None:
            continue
        if distance == 0 and step.is_broken:
            message = (
                f"the gradient of `{expression.function}` is infinite or NaN at the edge: clamp its argument"
            )
            evidence = {"distance from the edge": 0.0}
            yield Suspicion(expression.place, message, evidence, cause="non-finite")
        elif distance > 0:
            evidence = {"distance from the edge": float(f"{distance:.3g}")}
            because = f"a gradient flows, and the values stay {distance:.3g} or more from the edge"
            yield Refutation(expression.place, because, evidence, of_data=True)


def _distance(expression: Expression) -> float | None:
    """How far the result stays from where the gradient is infinite; None for another function, or NaN."""
    low, high = expression.minimum, expression.maximum
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    if expression.function == "sqrt":
        return low
    if expression.function == "acos":
        return max(min(low, math.pi - high), 0.0)
    if expression.function == "asin":
        return max(math.pi / 2 - max(high, -low), 0.0)
    return None
