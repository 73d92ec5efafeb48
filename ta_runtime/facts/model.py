"""What a run is made of: its hardware, models, layers, parameters and optimizers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from ta_lint.events.decay import DecayGroup, HeldParameter, role_of
from ta_runtime.naming import Layer, Names, Parameter
from ta_runtime.probes.sources import of_class

if TYPE_CHECKING:
    from ta_runtime.facts.history import OptimizerHistory
    from ta_runtime.probes.places import Place


_DATA_PARALLEL = {
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "FSDPModule",
}  # by name: the import takes 0.1 s


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware: `accelerator` is its device type, such as `cuda`, None without one; `capability` as CUDA counts it."""

    accelerator: str | None
    capability: tuple[int, int] | None = None

    @property
    def has_tensor_cores(self) -> bool:
        """Volta (7.0) and later have them: NVIDIA, CUDA C++ Programming Guide, compute capabilities."""
        return self.accelerator == "cuda" and self.capability is not None and self.capability >= (7, 0)

    @property
    def peak_memory(self) -> float | None:
        """The largest share of the device's memory that tensors have taken so far in the run; None where it is not known.

        Read when asked, from the allocator's own counters: the device is not waited for.
        """
        if self.capability is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return None
        total: int = torch.cuda.get_device_properties().total_memory
        return torch.cuda.max_memory_allocated() / total


@dataclass(frozen=True, slots=True)
class Model:
    """A model as it is built, before or beside any step. `place` is the line that made it, else the one that called it."""

    module: nn.Module
    place: "Place"
    names: Names
    machine: Machine

    @property
    def data_parallel(self) -> bool:
        """Whether DDP or FSDP is around or in it, and no mesh of more dimensions: ranks of other parallelism share data."""
        kinds = {kind.__name__ for module in self.module.modules() for kind in type(module).__mro__}
        meshes = [
            mesh for p in self.module.parameters() if (mesh := getattr(p, "device_mesh", None)) is not None
        ]
        return not kinds.isdisjoint(_DATA_PARALLEL) and all(mesh.ndim == 1 for mesh in meshes)

    @property
    def layers(self) -> Iterator[Layer]:
        """Every module, the model itself first; one that several names share comes once."""
        for name, module in self.module.named_modules():
            yield self.names.layer(self.module, name, module)

    @property
    def own_layers(self) -> Iterator[Layer]:
        """The layers that the user's own code puts together, not those inside a model class of a library."""
        own: dict[str, bool] = {}
        for name, module in self.module.named_modules():
            above = own[name.rpartition(".")[0]] if name else True
            from_torch = type(module).__module__.startswith("torch.nn.")
            own[name] = above if from_torch else of_class(type(module)) is not None
            if own[name]:
                yield self.names.layer(self.module, name, module)

    @property
    def wholes(self) -> Iterator["Model"]:
        """The models that this one is a part of, and that were never called themselves."""
        for module in self.names.around(self.module):
            yield Model(module, self.place, self.names, self.machine)

    @property
    def parameters(self) -> Iterator[Parameter]:
        """Every parameter, once. A lazy one has no shape yet: `nn.parameter.is_lazy`."""
        for name, tensor in self.module.named_parameters():
            yield self.names.parameter_of(self.module, name, tensor)


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer, and the line that built it. Its groups hold live parameters; read no values from them."""

    optimizer: torch.optim.Optimizer
    place: "Place"
    names: Names
    history: "OptimizerHistory"
    """Up to the step before."""

    @property
    def kind(self) -> str:
        return type(self.optimizer).__name__

    @property
    def torch_class(self) -> str:
        """Its class, such as `Adam`, if it is one of torch; else empty."""
        return self.kind if type(self.optimizer).__module__.startswith("torch.optim.") else ""

    @property
    def groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    @property
    def decays(self) -> tuple[DecayGroup, ...]:
        """Its groups; without their parameters if none of them has a weight decay."""
        decayed = any(group.get("weight_decay") for group in self.groups)
        holders = self.names.holders() if decayed else {}
        return tuple(
            DecayGroup(
                float(group["weight_decay"]) if "weight_decay" in group else None,
                "AdamW" in self.kind or bool(group.get("decoupled_weight_decay")),
                tuple(_held(one, holders.get(id(one), [])) for one in group["params"]) if decayed else (),
            )
            for group in self.groups
        )

    @property
    def is_scheduled(self) -> bool:
        """Whether a scheduler of torch has its learning rate in hand."""
        return any("initial_lr" in group for group in self.groups)

    def initial_rate(self, parameter: Tensor) -> float:
        """The learning rate of a parameter with which a scheduler began; 0 if there is none."""
        for group in self.groups:
            if any(each is parameter for each in group["params"]):
                rate = group.get("initial_lr", 0.0)
                return float(rate) if isinstance(rate, (int, float)) else 0.0
        return 0.0

    @property
    def parameters(self) -> list[Tensor]:
        return [parameter for group in self.groups for parameter in group["params"]]


def _held(parameter: Tensor, holders: list[tuple[str, nn.Module]]) -> HeldParameter:
    """A parameter of an optimizer, and the layers that have it."""
    if not holders:
        return HeldParameter("", None, parameter.requires_grad)
    name, layer = holders[0]
    role = role_of(
        name,
        type(layer).__name__,
        parameter.dim(),
        is_embedding=all(isinstance(module, nn.Embedding) for _, module in holders),
        is_linear=isinstance(layer, nn.Linear | _ConvNd),
    )
    return HeldParameter(name, role, parameter.requires_grad)
