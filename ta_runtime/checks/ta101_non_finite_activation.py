"""TA101: an input or activation is NaN or infinite, in a step whose loss or gradients are too, or all outputs are."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Forward, LayerCall, Step, Suspicion, Value


def check_step(step: Step) -> Iterator[Suspicion]:
    if not _harmed(step):
        return
    broken = {id(update.tensor) for update in step.updates if _is_bad(update.weight)}
    for forward in step.telling_forwards:
        if step.infers and not forward.spoiled:
            continue
        for value in forward.inputs:
            if _is_bad_input(value):
                message = f"the input `{value.name}` of the model has NaN or infinite values: clean the data or drop the sample"
                yield Suspicion(forward.place, message, cause="non-finite", order=0)
                return
        call = _first(forward)
        if call is None:
            continue
        if any(id(parameter) in broken for parameter in call.module.parameters()):
            return  # its weights were so before: that is TA100's
        layer = call.layer
        evidence = {"module": type(call.module).__name__}
        if call.inputs and all(value.norm is not None for value in call.inputs):
            message = f"{layer} makes NaN or infinity from finite inputs: check its weights and the size of its inputs"
        else:
            message = f"the output of {layer} is the first that is not finite: check the code between it and the layer before"
        yield Suspicion(layer.place, message, evidence, layer.name, cause="non-finite", order=1)
        return


def _harmed(step: Step) -> bool:
    """Whether the loss or a gradient is not finite, or of a call on trial the output: masks are infinite and padding is
    NaN where nothing comes of it.
    """
    if any(_is_bad(gradients.total) and not gradients.skipped for gradients in step.gradients):
        return True
    if any(forward.spoiled for forward in step.telling_forwards):
        return True
    if any(loss.training and _is_bad(loss.value) for loss in step.losses):
        return True
    return any(_is_bad_input(value) for forward in step.training_forwards for value in forward.outputs)


def _first(forward: Forward) -> LayerCall | None:
    for call in forward.calls:
        for value in call.outputs:
            if value.norm is not None and not math.isfinite(value.norm):
                return call
    return None


def _is_bad_input(value: Value) -> bool:
    """NaN or +inf. An input of -inf is a mask."""
    if value.maximum is None or not value.dtype.is_floating_point:
        return False
    return math.isnan(value.maximum) or value.maximum == math.inf


def _is_bad(value: float | None) -> bool:
    return value is not None and not math.isfinite(value)
