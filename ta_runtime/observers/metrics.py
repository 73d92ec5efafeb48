"""Looks at metrics of torchmetrics where a pass over a loader begins or ends: what they gathered, and whether that was computed."""

import sys
from typing import TYPE_CHECKING

from ta_lint.events.metric import TorchMetric
from ta_runtime.facts import Loader, Run
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.probes.sources import assigned_to

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_LIBRARY = "torchmetrics"
_LOOKS = 4096
"""At passes of a run: a loop may begin one for each step."""
_KEPT = 16


class TorchMetrics(Observer):
    """Watches the metrics of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._known: Register[TorchMetric] = Register()
        self._found: list[TorchMetric] = []
        self._built = 0  # objects that were there when metrics were last looked for
        self._looks = 0

    def epoch(self, call: Call) -> None:
        self._look()

    def pass_ended(self, loader: Loader) -> None:
        self._look()

    def report(self, run: Run) -> None:
        if run.over:
            self._look()
        run.metrics += self._found

    def _look(self) -> None:
        if _LIBRARY not in sys.modules or self._looks == _LOOKS:
            return
        self._looks += 1
        if len(BUILT) != self._built:
            self._built = len(BUILT)
            self._find()
        for metric in self._known.instances():
            if (found := self._known.get(metric)) is not None:
                _note(found, metric._update_count, is_computed=metric._computed is not None)

    def _find(self) -> None:
        base = getattr(sys.modules[_LIBRARY], "Metric", None)
        for built in BUILT.instances():
            place = BUILT.get(built)
            if base is None or not isinstance(built, base) or built in self._known or place is None:
                continue
            found = TorchMetric(place, type(built).__name__, assigned_to(place))
            self._known.add(built, found)
            self._found.append(found)


def _note(found: TorchMetric, updates: int, *, is_computed: bool) -> None:
    if updates < found.updates:
        found.resets += 1
        found.computed_at = 0
        found.added.clear()
    if is_computed and updates > found.computed_at:
        found.added.append(updates - found.computed_at)
        del found.added[:-_KEPT]
        found.computed_at = updates
    found.updates = updates
