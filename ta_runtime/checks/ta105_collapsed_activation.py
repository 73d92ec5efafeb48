"""TA105: nearly all units of a rectifier are zero for the whole batch."""

from collections.abc import Iterator

from ta_runtime.facts import Forward, Step, Suspicion

SHARE = 0.9
"""Of the units, as torch-audit has it for elements and TheDeepChecker for layers (0.5 there)."""
UNITS = 8
ROWS = 64
"""How often each unit must have been seen: one that is on for 5 % of the rows is off in all of 64 with probability 0.04."""
FEW = 64
"""The same in a trial, if all units of the layer are off: how often a unit was seen, all of them together. If each is on for
5 % of the rows, all are off with probability 0.04; if for half, with 5e-20."""


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        for call in forward.calls:
            if call.dead is None or call.dead < SHARE or (call.units or 0) < UNITS or (call.rows or 0) < ROWS:
                continue
            if _is_empty(forward):
                break
            layer = call.layer
            message = (
                f"nearly all units of {layer} are always zero and stop learning: check the layer before it"
            )
            evidence = {"share of units": call.dead, "units": call.units or 0, "rows": call.rows or 0}
            yield Suspicion(layer.place, message, evidence, layer.name)


def check_trial(step: Step) -> Iterator[Suspicion]:
    """Fewer rows, of which none turns on any unit: no gradient comes through the layer."""
    for forward in step.training_forwards:
        for call in forward.calls:
            if (
                call.dead == 1.0
                and (call.units or 0) >= UNITS
                and (call.units or 0) * (call.rows or 0) >= FEW
            ):
                if _is_empty(forward):
                    break
                layer = call.layer
                message = f"all units of {layer} are zero in this trial, so it passes no gradient: check the layer before it"
                yield Suspicion(
                    layer.place, message, {"units": call.units or 0, "rows": call.rows or 0}, layer.name
                )


def _is_empty(forward: Forward) -> bool:
    """Whether an input is all zeros, as when a model is warmed up."""
    return any(
        value.minimum == value.maximum == 0 and value.dtype.is_floating_point for value in forward.inputs
    )
