"""Counts how often a line draws the values of one tensor, until the first optimizer step.

Every initialisation that draws random numbers into a tensor ends in `normal_` or `uniform_`. They are wrapped while models
are built, and let go of with the first step.
"""

import sys
from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING

import torch
from torch import Tensor, UntypedStorage, nn

from ta_runtime.facts import Initialisation
from ta_runtime.measure.memory import storage
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, is_library, of_frame
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

REPEATED = 3
"""Draws of one line for one parameter that are reported. Two are usual for tied weights, which a walk over the modules
meets twice."""

_PLAIN = (Tensor, nn.Parameter)


class Initialisations(Observer):
    """Watches `normal_` and `uniform_`."""

    def attach(self) -> None:
        self._counts: Register[Counter[Place]] = Register()  # by storage
        self._found: dict[Place, Initialisation] = {}
        self._listen("draw", lambda call: self._drawn)

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self.detach()

    def report(self, run: "Run") -> None:
        run.initialisations = list(self._found.values())

    def _drawn(self, call: Call) -> None:
        tensor = call.args[0]
        if call.raised or type(tensor) not in _PLAIN or (held := storage(tensor)) is None:
            return
        place = _drawing_line(held)
        if place is None:
            return
        counts = self._counts.get(held)
        if counts is None:
            counts = Counter()
            self._counts.add(held, counts)
        counts[place] += 1
        if counts[place] == REPEATED and _is_parameter(held):
            found = self._found.setdefault(place, Initialisation(place, tuple(tensor.shape)))
            found.parameters += 1
            found.times = max(found.times, REPEATED)
        elif counts[place] > REPEATED and (known := self._found.get(place)) is not None:
            known.times = max(known.times, counts[place])


def _drawing_line(held: UntypedStorage) -> Place | None:
    """The line, but for those of torch, that draws; None if it is a library's: what that does is its own affair.

    A function that is given the tensor draws for the line that calls it.
    """
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        filename, package = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        if not package.startswith(("torch.", "ta_runtime.")) and filename != __file__:
            if is_library(filename):
                return None
            if not _is_given(frame, held):
                return of_frame(frame)
        frame = frame.f_back
    return None


def _is_given(frame: FrameType, held: UntypedStorage) -> bool:
    """Whether a tensor that lies there is an argument of the function that runs in a frame."""
    given = (frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount])
    return any(
        isinstance(value, Tensor) and type(value) in _PLAIN and storage(value) is held for value in given
    )


def _is_parameter(held: UntypedStorage) -> bool:
    """Whether some module has a parameter that lies there."""
    return any(
        parameter is not None and storage(parameter) is held
        for module in BUILT.instances()
        if isinstance(module, nn.Module)
        for parameter in module._parameters.values()
    )
