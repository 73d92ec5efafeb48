"""TA302: the input that feeds the first layer is empty, or the same value everywhere, step after step."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Forward, Step, Suspicion, Value
from ta_runtime.probes.places import Place

STEPS = 3
"""Audited steps in a row: one flat batch may be a warm-up, or an environment's first observation."""
SPREAD = 1e-6
"""Range over largest magnitude: several roundings of float32 (1.2e-7)."""
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.RNNBase, nn.Flatten)


def check_step(step: Step) -> Iterator[Suspicion]:
    flat: dict[tuple[str, Place, str], tuple[bool, Value]] = {}
    for forward in step.training_forwards:
        for value in forward.inputs:
            if value.dtype.is_floating_point and len(value.shape) > 1:
                key = ("TA302", forward.place, value.name)
                before, _ = flat.get(key, (True, value))
                flat[key] = before and _is_flat(value) and _is_main(value, forward), value
    for key, (holds, value) in flat.items():
        if step.history.streak(key, holds) < STEPS:
            continue
        _, place, name = key
        shape = str(tuple(value.shape))
        if value.numel == 0:
            yield Suspicion(
                place,
                f"input {name} of the model is empty, so nothing is learned: check how the batch is made",
                {"shape": shape},
                name,
            )
        else:
            message = (
                f"input {name} of the model holds one value, so nothing is learned: check how it is loaded"
            )
            yield Suspicion(place, message, {"value": value.maximum or 0.0, "shape": shape}, name)


def _is_main(value: Value, forward: Forward) -> bool:
    """Whether a layer reads it as it was given, or a view of it: not a mask, timesteps, weights of classes."""
    calls = (call for call in forward.calls if isinstance(call.module, _LAYERS))
    return any(call.inputs and (call.inputs[0] is value or call.inputs[0].viewed is value) for call in calls)


def _is_flat(value: Value) -> bool:
    """Empty, or all values equal; a single row may rightly be flat."""
    if value.numel == 0:
        return True
    if value.minimum is None or value.maximum is None or value.shape[0] < 2:
        return False
    return value.maximum - value.minimum <= SPREAD * max(abs(value.minimum), abs(value.maximum))
