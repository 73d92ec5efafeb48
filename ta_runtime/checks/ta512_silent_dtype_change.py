"""TA512: a module puts out a wider dtype than it is given and holds, and later layers are fed with it."""

from collections.abc import Iterator

import torch

from ta_runtime.facts import Call, Step, Suspicion

OF_STRUCTURE = True
_BYTES = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 4, torch.float64: 8}


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        if forward.autocast is not None:
            continue  # it chooses dtypes by operation
        for index, call in enumerate(forward.calls):
            given, result = _dtypes(call)
            if given is None or result is None or _BYTES[result] <= _BYTES[given]:
                continue
            if _is_fed(forward.calls[index + 1 :], given, result):
                layer = call.layer
                message = f"{layer} turns `{_name(given)}` into `{_name(result)}`, which later layers get"
                yield Suspicion(layer.place, message, {"module": type(call.module).__name__}, layer.name)
                break  # what follows follows from it


def _dtypes(call: Call) -> tuple[torch.dtype | None, torch.dtype | None]:
    """The one dtype of a call's inputs and parameters, and that of its output; None where there is not just one."""
    given = {value.dtype for value in call.inputs if value.dtype.is_floating_point}
    result = {value.dtype for value in call.outputs if value.dtype.is_floating_point}
    if given == result or len(given) != 1 or len(result) != 1 or not given | result <= _BYTES.keys():
        return None, None
    held = {parameter.dtype for parameter in call.module.parameters() if parameter.is_floating_point()}
    return (next(iter(given)), next(iter(result))) if held <= given else (None, None)


def _is_fed(later: list[Call], narrow: torch.dtype, wide: torch.dtype) -> bool:
    """Whether a layer with parameters in the narrow dtype gets the wide one."""
    return any(
        any(value.dtype is wide for value in call.inputs)
        and any(parameter.dtype is narrow for parameter in call.module.parameters(recurse=False))
        for call in later
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
