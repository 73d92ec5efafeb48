"""TA202: part of a model is on the accelerator, and part was left on the CPU."""

from collections.abc import Iterator

from torch import Tensor, nn

from ta_runtime.facts import Model, Suspicion

_ON_PURPOSE = (nn.Embedding, nn.EmbeddingBag)
"""Tables too large for the accelerator are kept on the CPU."""
_SHARDED = ("FullyShardedDataParallel", "DeepSpeedEngine", "PipelineStage")


def check_model(model: Model) -> Iterator[Suspicion]:
    accelerator = model.machine.accelerator
    modules = list(model.module.modules())
    if accelerator is None or any(map(_moves, modules)):
        return
    left = {id(module): found for module in modules if (found := _on(module, "cpu"))}
    moved = any(_on(module, accelerator) for module in modules)
    if not left or not moved:
        return
    layers = [layer for layer in model.layers if id(layer.module) in left]
    names = ", ".join(str(layer) for layer in layers[:3])
    message = (
        f"part of the model is on the CPU, the rest on `{accelerator}`: move the whole model with `.to()`"
    )
    yield Suspicion(layers[0].place, message, {"layers on the CPU": len(layers), "first": names})


def _on(module: nn.Module, device: str) -> list[Tensor]:
    """The parameters and buffers of a module itself there. Tensors of no dimension work with any device."""
    if isinstance(module, _ON_PURPOSE):
        return []
    own = [*module._parameters.values(), *module._buffers.values()]
    return [tensor for tensor in own if tensor is not None and tensor.device.type == device and tensor.dim()]


def _moves(module: nn.Module) -> bool:
    """Whether something moves the module's parameters, or its inputs, around its call."""
    return (
        hasattr(module, "hf_device_map")
        or hasattr(module, "_hf_hook")
        or type(module).__name__ in _SHARDED
        or bool(module._forward_pre_hooks)
        or any(hasattr(parameter, "ds_id") for parameter in module._parameters.values())
    )
