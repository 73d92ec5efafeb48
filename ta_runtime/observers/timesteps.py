"""Sees which tables are read by numbers that `torch.randint` drew, on thorough steps (`facts.Step.thorough`) alone.

Neither the numbers nor the tables are looked at: the arguments of the one and the length of the other tell enough.
"""

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ta_runtime.facts import Timesteps
from ta_runtime.measure.memory import address
from ta_runtime.observers.observer import ThoroughObserver
from ta_runtime.probes.patching import Call, End, Watch
from ta_runtime.probes.places import Place, caller, here, is_library

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 16  # draws of one step
_LEAST = 8  # entries of a table


class TimestepObserver(ThoroughObserver):
    """Watches draws and reads for one window at a time."""

    rules = frozenset({"TA560"})

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._found: dict[Place, Timesteps] = {}
        self._drawn: list[tuple[weakref.ref[Tensor], Timesteps]] = []
        self._tables: dict[int, Timesteps] = {}  # those read in this window, by where they lie

    def begin(self, window: "Window") -> None:
        self._drawn, self._tables = [], {}
        super().begin(window)

    def _watches(self) -> Mapping[str, Watch]:
        return {"draw_integers": self._draws}

    def report(self, run: "Run") -> None:
        run.timesteps = [found for found in self._found.values() if found.looks]

    def _draws(self, call: Call) -> End | None:
        own = is_library(caller().f_code.co_filename)
        return None if own or len(self._drawn) == _MOST else self._note_draw

    def _note_draw(self, call: Call) -> None:
        numbers = [value for value in call.args if isinstance(value, int)]
        end = call.kwargs.get("high", numbers[-1] if numbers else None)
        drawn = call.result
        if not isinstance(end, int) or type(drawn) is not Tensor or drawn.dim() != 1:
            return
        place = here()
        found = self._found.setdefault(place, Timesteps(place, end))
        found.end = max(found.end, end)
        if not self._drawn:
            self._listen("look_up", self._reads)
        self._drawn.append((weakref.ref(drawn), found))

    def _reads(self, call: Call) -> None:
        """A table is read by an index: by what was drawn, or by something else of the same shape."""
        tensors = [value for value in (*call.args, *call.kwargs.values()) if type(value) is Tensor]
        if len(tensors) != 2 or tensors[0].dim() != 1 or not tensors[0].is_floating_point():
            return
        table, index = tensors
        if index.dtype is not torch.int64 or len(table) < _LEAST:
            return
        found = self._drawn_as(index)
        if found is not None:
            found.looks += 1
            found.entries = max(found.entries, len(table))
            self._tables[address(table)] = found
        elif address(table) in self._tables:
            self._tables[address(table)].others += 1

    def _drawn_as(self, index: Any) -> Timesteps | None:
        """The draw that an index is, in whatever shape."""
        for reference, found in self._drawn:
            drawn = reference()
            if drawn is not None and address(drawn) == address(index) and drawn.numel() == index.numel():
                return found
        return None
