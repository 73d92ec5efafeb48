"""Sees the numbers that are read from DTensors, which may be one rank's part of what they seem to be."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from ta_runtime.facts import Read, Run
from ta_runtime.observers.observer import Observer
from ta_runtime.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.session import Session

_MOST = 256  # lines that read


class DTensors(Observer):
    """Watches what turns a DTensor into a number: `item`, `float` and `int`. A plain tensor never comes here."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._reads: dict[Place, Read] = {}

    def attach(self) -> None:
        if dist.is_available():
            for name in ("item", "__float__", "__int__"):
                self.undo.patch(DTensor, name, self._wrapped)

    def report(self, run: Run) -> None:
        run.reads = list(self._reads.values())

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self.session.guarded(self._note)

        def read(tensor: DTensor) -> Any:
            value = original(tensor)
            if self.undo and not torch.compiler.is_compiling():
                note(tensor, value)
            return value

        return read

    def _note(self, tensor: DTensor, value: float) -> None:
        place = here()
        known = self._reads.get(place)
        if (known is not None and known.parts > 1) or (known is None and len(self._reads) == _MOST):
            return
        sizes = [tensor.device_mesh.size(axis) for axis, p in enumerate(tensor.placements) if p.is_partial()]
        parts = 1
        for size in sizes:
            parts *= size
        self._reads[place] = Read(place, ", ".join(map(repr, tensor.placements)), parts, float(value))
