"""TA100: a gradient, or the parameter it went into, is NaN or infinite."""

import math
from collections.abc import Iterator

from ta_runtime.facts import AskedModel, Gradients, Step, Suspicion


def check_gradients(gradients: Gradients) -> Iterator[Suspicion]:
    """The first in backward order, which is the last in the model. A loss that is not finite comes before it."""
    total = gradients.total
    if total is None or math.isfinite(total) or gradients.skipped:
        return
    bad = [
        index for index, norm in enumerate(gradients.norms) if norm is not None and not math.isfinite(norm)
    ]
    if not bad:  # the norms are finite, their sum of squares is not
        return
    parameter = gradients.parameter(bad[-1])
    evidence: dict[str, float | int | str] = {"gradients": len(bad), "of": len(gradients.norms)}
    if gradients.before_clipping is not None:
        evidence["norm before clipping"] = gradients.before_clipping
    if gradients.loss is not None:
        evidence["loss"] = gradients.loss
    if gradients.loss is not None and not math.isfinite(gradients.loss):
        message = f"the loss is {_word(gradients.loss)}, and the step puts it into the parameters: check inputs and learning rate"
        place = gradients.loss_place or gradients.place
        yield Suspicion(place, message, evidence, cause="non-finite", order=2)
    message = f"the gradient of `{parameter.name}` {_state(gradients.norms[bad[-1]])}: skip the step, or lower the learning rate"
    place = parameter.place if parameter.layer is not None else gradients.place
    yield Suspicion(place, message, evidence, parameter.name, cause="non-finite", order=3)


def check_static(asked: AskedModel) -> Iterator[Suspicion]:
    bad = [weight for weight in asked.weights if not weight.is_finite]
    if bad:
        parameter = bad[0].parameter
        message = f"`{parameter.name}` {_state(bad[0].norm)} before training: check its initial value and the checkpoint"
        evidence = {"parameters": len(bad), "of": len(asked.weights)}
        yield Suspicion(parameter.place, message, evidence, parameter.name, cause="non-finite", order=1)


def check_step(step: Step) -> Iterator[Suspicion]:
    """The first, in model order, of the parameters that were not finite before the step, or are not after it."""
    before = [
        update for update in step.updates if update.weight is not None and not math.isfinite(update.weight)
    ]
    if before:
        parameter = before[0].parameter
        message = f"`{parameter.name}` {_state(before[0].weight)} before the step: check its initial value and the checkpoint"
        evidence = {"parameters": len(before), "of": len(step.updates)}
        yield Suspicion(parameter.place, message, evidence, parameter.name, cause="non-finite", order=1)
    after = [state for state in step.states if state.norm is not None and not math.isfinite(state.norm)]
    if after:
        parameter = after[0].parameter
        message = f"`{parameter.name}` {_state(after[0].norm)} after the step: lower the learning rate"
        evidence = {"parameters and statistics": len(after), "of": len(step.states)}
        yield Suspicion(parameter.place, message, evidence, parameter.name, cause="non-finite", order=4)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "infinite"


def _state(norm: float | None) -> str:
    """An infinite norm may be that of large finite values, whose squares overflow."""
    assert norm is not None
    return "is NaN" if math.isnan(norm) else "overflows"
