"""Sees parts of a model that are frozen and in training mode: batch norms that move their statistics, dropout that drops.

On audited steps, whenever a model was called, its frozen parts are looked at: how many batches their batch norms have
counted is the version of a tensor. A few elements of a frozen parameter are kept, to know whether it changes all the same.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from ta_runtime.facts import FrozenPart
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context

_LOOKS = 16  # at one part
_PARTS = 256
_SWITCHES = 16  # lines that put models into training mode
_ELEMENTS = 64  # that are kept of a parameter
_MOST = 0.5  # of the parameters of a model: below that dropout may be meant, as under adapters


@dataclass(slots=True)
class _Part:
    """A frozen part, and what was seen of it. The batch norms are kept by id, with their versions."""

    kind: str
    sample: Tensor | None
    step: int = -1
    looks: int = 0
    changes: bool = False
    versions: dict[int, int] = field(default_factory=dict)
    found: dict[Place, FrozenPart] = field(default_factory=dict)


class FrozenParts(Observer):
    """Watches what is frozen in the models that are called."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._switching = False
        self._switches: dict[Place, weakref.ref[nn.Module]] = {}
        self._known: Register[_Part] = Register()
        self._parts: list[_Part] = []

    def train(self, call: Call) -> End | None:
        if self._switching:
            return None
        if call.given(1, "mode", True):
            place = here()
            self._switches.pop(place, None)
            self._switches[place] = weakref.ref(call.args[0])
            if len(self._switches) > _SWITCHES:
                del self._switches[next(iter(self._switches))]
        self._switching = True
        return self._switched

    def _switched(self, call: Call) -> None:
        self._switching = False

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        window = self.session.window
        if result is None or window.step is None or self.session.compilers.used:
            return
        if all(parameter.requires_grad for parameter in module.parameters()):
            return
        for part in _frozen(module):
            layers = [layer for layer in part.modules() if _depends_on_mode(layer)]
            if layers:
                self._look(module, part, layers)

    def report(self, run: "Run") -> None:
        found: dict[Place, FrozenPart] = {}
        for part in self._parts:
            for place, seen in part.found.items() if not part.changes else ():
                known = found.setdefault(place, FrozenPart(place, seen.part, seen.called_at))
                known.looks = max(known.looks, seen.looks)
                known.norms += seen.norms
                known.dropouts += seen.dropouts
                known.still = max(known.still, seen.still)
        run.frozen_parts = list(found.values())

    def _look(self, root: nn.Module, module: nn.Module, layers: list[nn.Module]) -> None:
        part, step = self._known.get(module), self.session.window.index
        if part is None:
            if len(self._parts) == _PARTS:
                return
            part = _Part(type(module).__name__, _elements(module))
            self._known.add(module, part)
            self._parts.append(part)
        if part.step == step or part.looks == _LOOKS or part.changes:
            return
        again = part.step >= 0
        part.step = step
        before, part.versions = part.versions, _versions(layers)
        if not again:
            return
        part.looks += 1
        self._compare(part, module)
        place = self._put_into_training(module) or here()
        found = part.found.setdefault(place, FrozenPart(place, part.kind, here()))
        found.looks += 1
        found.still += not any(layer.training for layer in layers)
        moved = sum(version > before.get(key, version) for key, version in part.versions.items())
        found.norms = max(found.norms, moved)
        found.dropouts = max(found.dropouts, self._dropped(root, module, layers))

    @torch.no_grad()
    def _compare(self, part: _Part, module: nn.Module) -> None:
        """Whether the elements that were kept are no longer what they were."""
        now = _elements(module)
        if part.sample is None or now is None or now.shape != part.sample.shape:
            part.changes = True
            return
        if now.device != part.sample.device or now.dtype != part.sample.dtype:
            part.changes = True
            return

        def deliver(values: list[float]) -> None:
            part.changes |= values[0] != 0.0

        self.session.window.readings.norms([now - part.sample], deliver)

    def _put_into_training(self, module: nn.Module) -> Place | None:
        """The line that last called `train()` of the module or of one that holds it."""
        for place, reference in reversed(list(self._switches.items())):
            switched = reference()
            if switched is not None and any(part is module for part in switched.modules()):
                return place
        return None

    def _dropped(self, root: nn.Module, module: nn.Module, layers: list[nn.Module]) -> int:
        """The dropout layers of a part that were called and dropped, if the part is most of its model."""
        drops = [layer for layer in layers if isinstance(layer, _DropoutNd) and layer.training]
        if not drops or _size(module) < _MOST * _size(root):
            return 0
        assert self.session.window.step is not None
        called = {
            id(call.module)
            for forward in self.session.window.step.forwards
            if forward.model.module is root
            for call in forward.calls
        }
        return sum(id(layer) in called for layer in drops)


def _frozen(root: nn.Module) -> list[nn.Module]:
    """The outermost modules with parameters of which none requires a gradient."""

    def visit(module: nn.Module) -> tuple[bool, bool, list[nn.Module]]:
        """Whether it holds parameters, whether some learn, and the frozen parts in it if so."""
        own = [parameter for parameter in module._parameters.values() if parameter is not None]
        holds, learns = bool(own), any(parameter.requires_grad for parameter in own)
        found: list[nn.Module] = []
        for child in module._modules.values():
            if child is not None:
                child_holds, child_learns, inside = visit(child)
                holds, learns = holds or child_holds, learns or child_learns
                found += inside if child_learns else [child] if child_holds else []
        return holds, learns, found

    holds, learns, found = visit(root)
    return found if learns else [root] if holds else []


def _depends_on_mode(layer: nn.Module) -> bool:
    if isinstance(layer, _NormBase):
        return layer.num_batches_tracked is not None and layer.momentum != 0
    return isinstance(layer, _DropoutNd) and layer.p > 0


def _versions(layers: list[nn.Module]) -> dict[int, int]:
    """How often the counters of batch norms in training mode were written to."""
    counters = _counters(layers)
    return {key: counter._version for key, counter in counters if not counter.is_inference()}


def _counters(layers: list[nn.Module]) -> Iterator[tuple[int, Tensor]]:
    for layer in layers:
        if isinstance(layer, _NormBase) and layer.training and layer.num_batches_tracked is not None:
            yield id(layer), layer.num_batches_tracked


def _elements(module: nn.Module) -> Tensor | None:
    """A copy of a few elements of the largest parameter."""
    largest = max(module.parameters(), key=Tensor.numel)
    values = local(largest.detach())
    return values.reshape(-1)[:_ELEMENTS].clone() if measurable(values) and not largest.is_meta else None


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
