"""TA300: a forward pass failed because an input met parameters on another device."""

from collections.abc import Iterator

from torch import nn
from torch.distributed.tensor import DTensor

from ta_runtime.facts import LayerCall, Step, Suspicion, Value


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.forwards:
        if forward.complete or _moves_inputs(forward.model.module):
            continue  # a tensor was moved on the way, or may stay on its device: lengths, scalars
        call = next((call for call in forward.calls if call.raised), None)
        if call is None or (met := _strange(call)) is None:
            continue
        devices = {value.device for value in forward.inputs if _counts(value)}
        if devices and met.device not in devices:
            continue  # not the caller's doing: a tensor that the model makes
        if any(parameter.device == met.device for parameter in forward.model.module.parameters()):
            continue  # a part of the model is where the input is, and this layer was left behind: TA202
        message = "an input is on another device than the model, which raises or copies: move it with `.to()`"
        own = next(call.module.parameters()).device
        evidence = {"input": str(met.device), "parameters": str(own), "module": type(call.module).__name__}
        yield Suspicion(forward.place, message, evidence)


def _strange(call: LayerCall) -> Value | None:
    """An input on another device than the parameters of the module that raised, if these are all on one."""
    devices = {parameter.device for parameter in call.module.parameters()}
    if len(devices) != 1:
        return None
    return next((value for value in call.inputs if _counts(value) and value.device not in devices), None)


def _counts(value: Value) -> bool:
    """Scalars may be on the CPU, and lengths, as of packed sequences, must be."""
    return len(value.shape) > 1 or (len(value.shape) == 1 and value.dtype.is_floating_point)


def _moves_inputs(model: nn.Module) -> bool:
    """Whether other code manages devices: hooks of Accelerate, shards of FSDP and tensor parallelism."""
    return any(hasattr(module, "_hf_hook") for module in model.modules()) or any(
        isinstance(parameter, DTensor) for parameter in model.parameters()
    )
