"""Sees lines that draw the weights of embeddings with a `padding_idx`, and what its row holds when a model first runs.

Drawing is watched until the first optimizer step. A few elements of what was drawn are kept, to know whether pretrained vectors
came over them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import PaddingRow
from ta_runtime.measure.kinds import measurable
from ta_runtime.measure.memory import address
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import NOWHERE, Place, here
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

_ELEMENTS = 8  # of the first and of the last row
_MOST = 256  # embeddings


@dataclass(slots=True)
class _Drawn:
    place: Place
    ends: tuple[Tensor, Tensor]
    looked_at: bool = False


class PaddingRows(Observer):
    """Watches `normal_` and `uniform_` of the weights of embeddings."""

    def attach(self) -> None:
        self._embeddings: Register[bool] = Register()
        self._drawn: Register[_Drawn] = Register()
        self._found: dict[Place, PaddingRow] = {}
        self.undo.append(construction.watch(self.session.guarded(self._built)))
        self._listen("draw", self._draws)

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self.detach()
        self._drawn = Register()

    def report(self, run: "Run") -> None:
        run.padding_rows = list(self._found.values())

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if self.session.window.step is None or not len(self._drawn):
            return
        for part in module.modules():
            drawn = self._drawn.get(part)
            if drawn is not None and not drawn.looked_at:
                drawn.looked_at = True
                self._look(part, drawn)

    def _built(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding) and len(self._embeddings) < _MOST:
            self._embeddings.add(module, True)

    def _draws(self, call: Call) -> End | None:
        return self._drew if len(self._embeddings) else None

    @torch.no_grad()
    def _drew(self, call: Call) -> None:
        tensor = call.args[0]
        if call.raised or not isinstance(tensor, Tensor) or tensor.dim() != 2 or not measurable(tensor):
            return
        place = address(tensor)
        for module in self._embeddings.instances():
            weight = module._parameters.get("weight")
            if (
                isinstance(weight, Tensor)
                and module.padding_idx is not None
                and measurable(weight)
                and address(weight) == place
                and weight.shape == tensor.shape
            ):
                self._drawn.add(module, _Drawn(here(), _ends(weight)))

    @torch.no_grad()
    def _look(self, module: nn.Module, drawn: _Drawn) -> None:
        weight, index = module._parameters.get("weight"), module.padding_idx
        if not isinstance(weight, Tensor) or not measurable(weight) or not isinstance(index, int):
            return
        now = _ends(weight)
        if any(one.shape != other.shape for one, other in zip(now, drawn.ends, strict=True)):
            return
        found = self._found.setdefault(drawn.place, PaddingRow(drawn.place, BUILT.get(module) or NOWHERE))

        def deliver(values: list[float]) -> None:
            found.rows += 1
            found.filled += values[0] > 0 and 0.0 in values[1:]

        changes = [
            torch.linalg.vector_norm((one - other.to(one.device, one.dtype)).float())
            for one, other in zip(now, drawn.ends, strict=True)
        ]
        row = torch.linalg.vector_norm(weight.detach()[index].float())
        self.session.window.readings.scalars([row, *changes], deliver)


def _ends(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Copies of the first elements of the first row and of the last."""
    values = weight.detach()
    return values[0, :_ELEMENTS].clone(), values[-1, :_ELEMENTS].clone()
