"""TA512: a module computes in a wider dtype than autocast, or than its inputs and parameters have."""

from collections.abc import Iterator

import torch

from ta_runtime.facts import Forward, LayerCall, Step, Suspicion

OF_STRUCTURE = True
SHARE = 0.25
"""The least share of a forward pass's multiplications that autocast misses: a router or a head in float32 is less."""
_BYTES = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 4, torch.float64: 8}


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        if forward.autocast is not None:
            yield from _left_out(forward, forward.autocast)
            continue
        for index, call in enumerate(forward.calls):
            given, result = _dtypes(call)
            if given is None or result is None or _BYTES[result] <= _BYTES[given]:
                continue
            if _is_fed(forward.calls[index + 1 :], given, result):
                layer = call.layer
                message = f"{layer} turns `{_name(given)}` into `{_name(result)}` for later layers: cast its result back"
                yield Suspicion(layer.place, message, {"module": type(call.module).__name__}, layer.name)
                break  # later changes are its consequences


def _left_out(forward: Forward, wanted: torch.dtype) -> Iterator[Suspicion]:
    """Layers that autocast does not reach although it is on around the model, if much of the work is theirs.

    The last layer is left out of account: scores are often computed in float32 on purpose.
    """
    calls = [call for call in forward.calls if call.multiplications]
    missed = [call for call in calls[:-1] if call.outputs[0].dtype is torch.float32]
    total = sum(call.multiplications for call in calls)
    share = sum(call.multiplications for call in missed) / total if total else 0.0
    if share >= SHARE:
        layer = missed[0].layer
        message = f"{layer} computes in float32 despite autocast to `{_name(wanted)}`: look for what switches it off"
        evidence = {"layers": len(missed), "share of multiplications": round(share, 2)}
        yield Suspicion(layer.place, message, evidence, layer.name)


def _dtypes(call: LayerCall) -> tuple[torch.dtype | None, torch.dtype | None]:
    """The one dtype of a call's inputs and parameters, and that of its output; None if there are several."""
    given = {value.dtype for value in call.inputs if value.dtype.is_floating_point}
    result = {value.dtype for value in call.outputs if value.dtype.is_floating_point}
    if given == result or len(given) != 1 or len(result) != 1 or not given | result <= _BYTES.keys():
        return None, None
    held = {parameter.dtype for parameter in call.module.parameters() if parameter.is_floating_point()}
    return (next(iter(given)), next(iter(result))) if held <= given else (None, None)


def _is_fed(later: list[LayerCall], narrow: torch.dtype, wide: torch.dtype) -> bool:
    """Whether a layer with parameters in the narrow dtype gets the wide one."""
    return any(
        any(value.dtype is wide for value in call.inputs)
        and any(parameter.dtype is narrow for parameter in call.module.parameters(recurse=False))
        for call in later
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
