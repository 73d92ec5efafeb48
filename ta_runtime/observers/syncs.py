"""Sees where the user's code reads the values of tensors, in audited steps and in those right after them.

What waits for the device in two steps in a row does so in every step, and not in every hundredth as a log does.
"""

import time
from functools import partial
from typing import TYPE_CHECKING

from ta_runtime.facts import Run, Sync
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import hub
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, caller, here, is_library
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from types import FrameType

    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_PRINTING = frozenset({"torch._tensor", "torch._tensor_str"})
_MOST = 512  # reads of one step


class Syncs(Observer):
    """Watches the reads of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._reading = Undo()
        self._found: dict[Place, Sync] = {}
        self._reads: dict[Place, list[float]] = {}  # of this step: on the device, on the CPU, seconds
        self._count = 0
        self._before: set[Place] | None = None  # where the audited step before waited
        self._audited = False
        self._wanted = "TA208" in session.settings.rules

    def attach(self) -> None:
        self.undo.append(self._let_go)

    def begin(self, window: "Window") -> None:
        if not self._wanted:
            return
        if self._reading:
            self._end_step()
        audited = window.step is not None
        if (audited or self._audited) and not self.session.runs_compiled:
            self._watch()
        else:
            self._let_go()
        self._audited = audited

    def report(self, run: Run) -> None:
        run.syncs = list(self._found.values())

    def _watch(self) -> None:
        if not self._reading:
            self._reading.append(hub.watch("read", self._read, self.session.barrier.run))

    def _let_go(self) -> None:
        self._reading()
        self._reads, self._count = {}, 0

    def _end_step(self) -> None:
        waiting = {place for place, (on_device, _, _) in self._reads.items() if on_device}
        for place, (on_device, on_cpu, seconds) in self._reads.items():
            sync = self._found.setdefault(place, Sync(place))
            sync.steps += 1
            sync.on_device += int(on_device)
            sync.on_cpu += int(on_cpu)
            sync.waited += seconds
        if self._before is not None:
            for place in self._before:
                sync = self._found[place]
                sync.again += place in waiting
                sync.skipped += place not in waiting
        self._before = waiting if self._audited else None
        self._reads, self._count = {}, 0

    def _read(self, call: Call) -> End | None:
        if not _is_asked_for(caller()):
            return None
        return partial(self._was_read, call.args[0].is_cpu, time.perf_counter())

    def _was_read(self, on_cpu: bool, started: float, call: Call) -> None:
        if not call.raised:
            self._note(on_cpu, time.perf_counter() - started)

    def _note(self, on_cpu: bool, seconds: float) -> None:
        if self._count == _MOST:
            return
        self._count += 1
        reads = self._reads.setdefault(here(), [0, 0, 0.0])
        if on_cpu:
            reads[1] += 1
        else:
            reads[0] += 1
            reads[2] += seconds


def _is_asked_for(frame: "FrameType") -> bool:
    """Whether the user's code reads or prints the tensor, and not a library for purposes of its own."""
    return not is_library(frame.f_code.co_filename) or frame.f_globals.get("__name__") in _PRINTING
