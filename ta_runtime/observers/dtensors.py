"""Sees the numbers that are read from DTensors, which may be one rank's part of what they seem to be."""

from typing import TYPE_CHECKING

from ta_runtime.facts import Read, Run
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_MOST = 256  # lines that read


class DTensors(Observer):
    """Watches what turns a DTensor into a number: `item`, `float` and `int`. A plain tensor never comes here."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._reads: dict[Place, Read] = {}

    def read_distributed(self, call: Call) -> End:
        return self._note

    def report(self, run: Run) -> None:
        run.reads = list(self._reads.values())

    def _note(self, call: Call) -> None:
        tensor, place = call.args[0], here()
        if call.raised:
            return
        known = self._reads.get(place)
        if (known is not None and known.parts > 1) or (known is None and len(self._reads) == _MOST):
            return
        sizes = [tensor.device_mesh.size(axis) for axis, p in enumerate(tensor.placements) if p.is_partial()]
        parts = 1
        for size in sizes:
            parts *= size
        self._reads[place] = Read(place, ", ".join(map(repr, tensor.placements)), parts, float(call.result))
