"""Sees models of PEFT that are called to train, and which of their parameters require a gradient.

PEFT itself is not imported: its classes are known by the module that they are from.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ta_runtime.facts import AdaptedModel
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import BUILT

if TYPE_CHECKING:
    from ta_runtime.facts import Run

_LOOKS = 16  # at the models of one line


class Adapters(Observer):
    """Watches the calls of models with adapters."""

    def attach(self) -> None:
        self._found: dict[Place, AdaptedModel] = {}

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if "peft" not in sys.modules or self.session.window.step is None:
            return
        if not module.training or not torch.is_grad_enabled():
            return
        for model in adapted(module):
            self._look(model)

    def report(self, run: "Run") -> None:
        run.adapted_models = list(self._found.values())

    def _look(self, model: nn.Module) -> None:
        called_at = here()
        place = BUILT.get(model) or called_at
        found = self._found.setdefault(place, AdaptedModel(place, called_at))
        if found.looks == _LOOKS:
            return
        found.looks += 1
        parameters = [parameter for layer in tuners(model) for parameter in parameters_of(layer)]
        if not parameters:
            return
        found.trained += any(parameter.requires_grad for parameter in parameters)
        found.frozen += not any(parameter.requires_grad for parameter in model.parameters())


def adapted(root: nn.Module) -> Iterator[nn.Module]:
    """The models of PEFT in a module."""
    for module in root.modules():
        if _is_from(module, "peft.peft_model"):
            yield module


def tuners(model: nn.Module) -> Iterator[nn.Module]:
    """The layers of a model of PEFT that hold parts of adapters."""
    for module in model.modules():
        if _is_from(module, "peft.tuners.tuners_utils") and hasattr(module, "adapter_layer_names"):
            yield module


def parameters_of(layer: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters of the adapters in a layer."""
    for name in layer.adapter_layer_names:
        part = getattr(layer, name, None)
        if isinstance(part, (nn.Module, nn.ParameterDict)):
            yield from part.parameters()


def _is_from(module: nn.Module, file: str) -> bool:
    """Whether a class of a module is defined in a file of PEFT."""
    return any(kind.__module__ == file for kind in type(module).__mro__)
