"""Looks, on structural steps (`facts.Step.structural`), at the tensors that the user's modules have as plain attributes, and at their parameters.

And, when a state is loaded into another model of the class, whether that has the same ones.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import Attribute, Model
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.places import NOWHERE, Place
from ta_runtime.probes.sources import of_attribute, of_class

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

_MOVED = ("ToCopyBackward0",)
_ELEMENTS = 65_536
"""Larger tensors are not looked into."""


@dataclass(slots=True)
class _Seen:
    """A tensor at the last look."""

    tensor: "weakref.ref[Tensor]"
    version: int


class Attributes(Observer):
    """Keeps one `Attribute` for each line of a class that assigns a tensor."""

    def attach(self) -> None:
        self._attributes: dict[Place, Attribute] = {}
        self._seen: dict[
            tuple[Place, str], _Seen
        ] = {}  # by line and layer: a class may have several instances
        self._kept: dict[tuple[str, str, str], tuple[Tensor, Attribute]] = {}
        self._criteria: dict[int, nn.Module] = {}  # modules of this step that have no parameters

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        """A criterion may keep what it learns, too: a running centre, say."""
        step = self.session.window.step
        if step is None or not step.structural or not torch.is_grad_enabled():
            return
        if of_class(type(module)) is not None and next(module.parameters(), None) is None:
            self._criteria[id(module)] = module

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if window.step is None or not window.step.structural or window.stepped:
            return
        models = {id(forward.model.module): forward.model for forward in window.step.training_forwards}
        for module in self._criteria.values():
            models[id(module)] = self.session.model(module, NOWHERE)
        self._criteria = {}
        for model in models.values():
            self._look(model)

    def report(self, run: "Run") -> None:
        run.attributes = list(self._attributes.values())

    @torch.no_grad()
    def _look(self, model: Model) -> None:
        first = next(model.module.parameters(), None)
        device = first.device if first is not None else None
        held = _held(model)
        for layer in model.own_layers:
            kind = type(layer.module)
            if kind.__module__.startswith("torch."):
                continue
            for name, tensor in _tensors(layer.module):
                place = of_attribute(kind, name)
                if place is None:
                    continue
                registered = name in layer.module._parameters
                if not registered and id(tensor) in held:
                    continue  # an optimizer writes to it
                attribute = self._attributes.setdefault(place, Attribute(place, name, registered))
                attribute.registered = registered
                attribute.looks += 1
                attribute.device, attribute.model_device = str(tensor.device), str(device or "")
                if registered or tensor.is_meta:
                    continue
                if attribute.looks == 1:
                    self.session.history.is_waiting = True  # something may write to it in the next step
                attribute.apart = device not in (None, tensor.device) and tensor.dim() > 0
                lost = _origin(tensor) if tensor.requires_grad else None
                attribute.of_lost_parameter = lost is not None and id(lost) not in held
                attribute.learns = tensor.requires_grad and tensor.is_leaf and tensor.grad is not None
                self._compare(attribute, layer.name, tensor)
                key = (type(model.module).__qualname__, layer.name, name)
                if key not in self._kept and not attribute.is_plain and _is_small(tensor):
                    self._kept[key] = tensor.detach().clone(), attribute

    def _compare(self, attribute: Attribute, layer: str, tensor: Tensor) -> None:
        """Whether the tensor of a layer is the one that was there at the last look, and as it was."""
        seen = self._seen.get((attribute.place, layer))
        version = 0 if tensor.is_inference() else tensor._version
        if seen is None:
            attribute.is_plain = _is_plain(tensor)
        elif seen.tensor() is not tensor:
            attribute.replaced += 1
        else:
            attribute.written += version != seen.version
        self._seen[attribute.place, layer] = _Seen(weakref.ref(tensor), version)

    @torch.no_grad()
    def loads_state(self, module: nn.Module, state: Any) -> None:
        """Whether a model that gets a trained state has the plain tensors that the trained model had."""
        if not self._kept:
            return
        kind = type(module).__qualname__
        parts = dict(module.named_modules())
        for (of_kind, path, name), (kept, attribute) in self._kept.items():
            own = vars(parts[path]).get(name) if of_kind == kind and path in parts else None
            if isinstance(own, Tensor) and own.shape == kept.shape and _is_small(own):
                attribute.differs += not torch.equal(own, kept)


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, value in module._parameters.items():
        if value is not None:
            yield name, value
    for name, value in vars(module).items():
        if isinstance(value, Tensor):
            yield name, value


def _held(model: Model) -> frozenset[int]:
    """What some optimizer holds, or the model has."""
    return construction.held_ids() | {id(parameter) for parameter in model.module.parameters()}


def _origin(tensor: Tensor) -> nn.Parameter | None:
    """The parameter that a tensor is a converted copy of, by its graph."""
    node = tensor.grad_fn
    if node is None or node.name() not in _MOVED:
        return None
    source = getattr(node.next_functions[0][0], "variable", None)
    return source if isinstance(source, nn.Parameter) else None


def _is_small(tensor: Tensor) -> bool:
    """Whether its values can be read at no cost to speak of."""
    on_cpu = tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.requires_grad
    return on_cpu and 0 < tensor.numel() <= _ELEMENTS


def _is_plain(tensor: Tensor) -> bool:
    if not _is_small(tensor):
        return False
    values = tensor.detach().flatten()
    if values.dtype is torch.bool or len(set(values.tolist())) <= 2:
        return True
    steps = values.double().diff()
    return bool(torch.allclose(steps, steps[0], rtol=1e-4, atol=1e-7))
