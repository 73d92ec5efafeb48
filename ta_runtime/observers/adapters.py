"""Sees models of PEFT that are called to train, and which of their parameters require a gradient.

PEFT itself is not imported: its classes are known by the module that they are from. What is drawn at random is noted until the
first optimizer step, which is how a new head is told from one that was loaded. How many rows a table is built with is how new ones are
told.
"""

import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import AdaptedModel, Value
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

_LOOKS = 16  # at the models of one line


class Adapters(Observer):
    """Watches the calls of models with adapters."""

    def attach(self) -> None:
        self._found: dict[Place, AdaptedModel] = {}
        self._drawn: Register[bool] = Register()
        self._rows: Register[int] = Register()
        self._last: weakref.ref[nn.Embedding] | None = None
        self._lookups: list[tuple[AdaptedModel, Value, int, int | None]] = []
        self.undo.append(construction.watch(self.session.guarded(self._built)))
        self._listen("draw", self._draws)

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self.detach()

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if "peft" not in sys.modules or self.session.window.step is None:
            return
        if not module.training or not torch.is_grad_enabled():
            return
        for model in adapted(module):
            self._look(model)

    def report(self, run: "Run") -> None:
        for found, ids, rows, padding in self._lookups:
            found.new_rows += ids.maximum is not None and ids.maximum >= rows and ids.maximum != padding
        self._lookups = [entry for entry in self._lookups if entry[1].maximum is None]
        run.adapted_models = list(self._found.values())

    def _built(self, module: nn.Module) -> None:
        """Notes the rows of the table before, which has them by now: a module is told of as its construction begins."""
        table = self._last() if self._last is not None else None
        if isinstance(rows := getattr(table, "num_embeddings", None), int):
            self._rows.add(table, rows)
        self._last = weakref.ref(module) if isinstance(module, nn.Embedding) else None

    def _draws(self, call: Call) -> None:
        if "peft" in sys.modules and isinstance(call.args[0], nn.Parameter):
            self._drawn.add(call.args[0], True)

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
        for name, head in heads(model):
            self._look_at_head(found, name, list(head.parameters()))
        self._look_at_tables(found, model)

    def _look_at_tables(self, found: AdaptedModel, model: nn.Module) -> None:
        """Which tables of a model have got rows, whether they train, and which rows the last call looked up."""
        window = self.session.window
        inside = {id(part) for around in stand_ins(model) for part in around.modules()}
        looked_up: dict[int, list[Value]] = {}
        for forward in (window.step.forwards if window.step is not None else ())[-1:]:
            for call in forward.lookups:
                looked_up.setdefault(id(call.module), []).append(call.inputs[0])
        for table in model.modules():
            rows = self._rows.get(table)
            if rows is None or not isinstance(table, nn.Embedding) or table.num_embeddings <= rows:
                continue
            if table.weight.requires_grad or id(table) in inside:
                found.trained_tables += 1
            elif found.trained and len(self._lookups) < _LOOKS:
                padding = getattr(getattr(model, "config", None), "pad_token_id", None)
                self._lookups += [(found, ids, rows, padding) for ids in looked_up.get(id(table), ())]

    def _look_at_head(self, found: AdaptedModel, name: str, parameters: list[Tensor]) -> None:
        if any(parameter.requires_grad for parameter in parameters):
            found.trained_heads += 1
        elif found.trained and any(parameter in self._drawn for parameter in parameters):
            found.random_heads += [name] if name not in found.random_heads else []


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


def heads(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The parts with parameters, beside its base, of the classifier of transformers in a model of PEFT, such as `score`."""
    for module in model.modules():
        prefix = getattr(module, "base_model_prefix", None)
        if _is_from(module, "transformers.modeling_utils") and "Classification" in type(module).__name__:
            for name, part in module.named_children():
                if name != prefix and next(part.parameters(), None) is not None:
                    yield name, part
            return


def stand_ins(model: nn.Module) -> Iterator[nn.Module]:
    """The parts of PEFT that stand in for a layer, with adapters, rows or a copy of it that train."""
    yield from tuners(model)
    for module in model.modules():
        if _is_from(module, "peft.utils.other"):
            yield module


def parameters_of(layer: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters of the adapters in a layer."""
    names: Any = layer.adapter_layer_names
    for name in names:
        part = getattr(layer, name, None)
        if isinstance(part, (nn.Module, nn.ParameterDict)):
            yield from part.parameters()


def _is_from(module: nn.Module, file: str) -> bool:
    """Whether a class of a module is defined in a file of PEFT."""
    return any(kind.__module__ == file for kind in type(module).__mro__)
