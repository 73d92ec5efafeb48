"""Sees where the user's code reads the values of tensors, in audited steps and in those right after them.

What waits for the device in two steps in a row does so in every step, and not in every hundredth as a log does.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ta_runtime.facts import Run, Sync
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Shared, Undo, from_its_line
from ta_runtime.places import Place, caller, here, is_library

if TYPE_CHECKING:
    from types import FrameType

    from ta_runtime.session import Session
    from ta_runtime.window import Window

_READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__")
_PRINTING = frozenset({"torch._tensor", "torch._tensor_str"})
_MOST = 512  # reads of one step


class Syncs(Observer):
    """Watches the reads of a session."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self.note = session.guarded(self._note)
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
        if self in _attached:
            self._end_step()
        audited = window.step is not None
        if (audited or self._audited) and not self.session.runs_compiled:
            _attached.join(self)
        else:
            self._let_go()
        self._audited = audited

    def report(self, run: Run) -> None:
        run.syncs = list(self._found.values())

    def _let_go(self) -> None:
        _attached.leave(self)
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


def _read(original: Callable[..., Any]) -> Callable[..., Any]:
    call = from_its_line(original)

    def read(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not _attached or torch.compiler.is_compiling() or not _is_asked_for(caller()):
            return call(tensor, *args, **kwargs)
        on_cpu = tensor.is_cpu
        started = time.perf_counter()
        result = call(tensor, *args, **kwargs)
        seconds = time.perf_counter() - started
        for syncs in _attached:
            syncs.note(on_cpu, seconds)
        return result

    return read


def _put_on(undo: Undo) -> None:
    for name in _READS:
        undo.patch(Tensor, name, _read)


_attached: Shared[Syncs] = Shared(_put_on)


def _is_asked_for(frame: "FrameType") -> bool:
    """Whether the user's code reads or prints the tensor, and not a library for purposes of its own."""
    return not is_library(frame.f_code.co_filename) or frame.f_globals.get("__name__") in _PRINTING
