"""TA302: the input that feeds the first layer is empty, or the same value everywhere, step after step."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Forward, Step, Suspicion, Value
from ta_runtime.places import Place

STEPS = 3
"""Audited steps in a row: one flat batch may be a warm-up, or an environment's first observation."""
SPREAD = 1e-6
"""Range over largest magnitude: several roundings of float32 (1.2e-7)."""
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.RNNBase, nn.Flatten)


def check_step(step: Step) -> Iterator[Suspicion]:
    given: dict[tuple[str, Place, str], list[Value]] = {}
    for forward in step.training_forwards:
        for value in _mains(forward):
            given.setdefault(("TA302", forward.place, value.name), []).append(value)
    for key, values in given.items():
        if step.history.streak(key, all(map(_is_flat, values))) < STEPS:
            continue
        _, place, name = key
        value = values[0]
        if value.numel == 0:
            message = f"the input `{name}` of the model is empty"
            yield Suspicion(place, message, {"shape": str(tuple(value.shape))}, name)
        else:
            message = f"the input `{name}` of the model has the same value everywhere"
            yield Suspicion(
                place, message, {"value": value.maximum or 0.0, "shape": str(tuple(value.shape))}, name
            )


def _mains(forward: Forward) -> list[Value]:
    """The float inputs that a layer reads as they were given: not masks, timesteps, weights of classes."""
    read = {id(call.inputs[0]) for call in forward.calls if call.inputs and isinstance(call.module, _LAYERS)}
    return [v for v in forward.inputs if id(v) in read and len(v.shape) > 1 and v.dtype.is_floating_point]


def _is_flat(value: Value) -> bool:
    """Nothing in it, or nothing that differs; one row alone may well be flat."""
    if value.numel == 0:
        return True
    if value.minimum is None or value.maximum is None or value.shape[0] < 2:
        return False
    return value.maximum - value.minimum <= SPREAD * max(abs(value.minimum), abs(value.maximum))
