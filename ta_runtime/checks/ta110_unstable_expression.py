"""TA110: an expression overflows where a single torch function does not, and its gradient is infinite or NaN."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Expression, Refutation, Said, Step, Suspicion

STABLE = {
    "softmax": "log_softmax",
    "sigmoid": "logsigmoid",
    "1 - sigmoid": "logsigmoid",
    "1 + exp": "softplus",
    "sum of exp": "logsumexp",
}
DIGITS = 1e-2
"""The least magnitude of `x` in `log(1 + x)` and `exp(x) - 1` that keeps five of the seven digits of float32."""


def check_step(step: Step) -> Iterator[Said]:
    lines: dict[tuple[str, int], list[Expression]] = {}
    for expression in step.expressions:
        if expression.function in ("log", "exp") and expression.minimum is not None:
            lines.setdefault((expression.place.path, expression.place.line), []).append(expression)
    for expressions in lines.values():
        overflowed = [
            found for found in expressions if found.of in STABLE and found.recorded and _overflows(found)
        ]
        if overflowed and step.is_broken:
            for found in overflowed:
                message = f"the logarithm of `{found.of}` is infinite, and its gradient is not finite: use `{STABLE[found.of]}`"
                yield Suspicion(found.place, message, _evidence(found), cause="non-finite")
        elif all(_is_harmless(found) for found in expressions):
            for found in expressions:
                evidence = _evidence(found)
                because = f"its values stay between {found.minimum:.3g} and {found.maximum:.3g}"
                yield Refutation(found.place, because, evidence, of_data=True)


def _overflows(expression: Expression) -> bool:
    return expression.function == "log" and any(
        value is not None and math.isinf(value) for value in (expression.minimum, expression.maximum)
    )


def _is_harmless(expression: Expression) -> bool:
    """Whether nothing overflowed, and no digits of a small `x` were lost where there may be one."""
    assert expression.minimum is not None
    assert expression.maximum is not None
    assert expression.smallest is not None
    if not (math.isfinite(expression.minimum) and math.isfinite(expression.maximum)):
        return False
    return expression.of in STABLE or expression.smallest >= DIGITS


def _evidence(expression: Expression) -> dict[str, float | int | str]:
    what = "exponent" if expression.function == "exp" else "logarithm"
    found = {f"least {what}": expression.minimum, f"largest {what}": expression.maximum}
    numbers: dict[str, float | int | str] = {
        name: float(f"{value:.3g}") for name, value in found.items() if value is not None
    }
    return {"of": expression.of, **numbers} if expression.of else numbers
