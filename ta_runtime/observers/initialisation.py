"""Counts how often a line draws the values of one tensor, until the first optimizer step.

Every initialisation that draws random numbers into a tensor ends in `normal_` or `uniform_`. They are wrapped while models
are built, and let go of with the first step.
"""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, UntypedStorage, nn

from ta_runtime.facts import Initialisation
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Patch
from ta_runtime.places import BUILT, Place, Register, here, is_library

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.window import Window

REPEATED = 3
"""Draws of one line for one parameter that are reported. Two are usual for tied weights, which a walk over the modules
meets twice."""


_attached: "list[Initialisations]" = []  # sessions share the wrappers, as they let go of them in any order
_patches: list[Patch] = []


class Initialisations(Observer):
    """Watches `normal_` and `uniform_`."""

    def attach(self) -> None:
        self._counts: Register[Counter[Place]] = Register()  # by storage
        self._found: dict[Place, Initialisation] = {}
        self.note = self.session.guarded(self._note)
        _attached.append(self)
        if len(_attached) == 1:
            _patches.extend(Patch(Tensor, name, _drawing) for name in ("normal_", "uniform_"))

    def detach(self) -> None:
        if self in _attached:
            _attached.remove(self)
            while _patches and not _attached:
                _patches.pop().undo()

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self.detach()

    def report(self, run: "Run") -> None:
        run.initialisations = list(self._found.values())

    def _note(self, tensor: Tensor) -> None:
        if type(tensor) not in (Tensor, nn.Parameter) or tensor.is_meta or not _is_called_by_user():
            return
        storage = tensor.untyped_storage()
        counts = self._counts.get(storage)
        if counts is None:
            counts = Counter()
            self._counts.add(storage, counts)
        place = here()
        counts[place] += 1
        if counts[place] == REPEATED and _is_parameter(storage):
            found = self._found.setdefault(place, Initialisation(place, tuple(tensor.shape)))
            found.parameters += 1
            found.times = max(found.times, REPEATED)
        elif counts[place] > REPEATED and (known := self._found.get(place)) is not None:
            known.times = max(known.times, counts[place])


def _drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = original(tensor, *args, **kwargs)
        if not torch.compiler.is_compiling():
            for observer in tuple(_attached):
                observer.note(tensor)
        return result

    return draw


def _is_called_by_user() -> bool:
    """Whether the code that draws, but for that of torch, is the user's: what a library does is its own affair."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        filename, package = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        if not package.startswith(("torch.", "ta_runtime.")) and filename != __file__:
            return not is_library(filename)
        frame = frame.f_back
    return False


def _is_parameter(storage: UntypedStorage) -> bool:
    """Whether some module has a parameter that lies there."""
    return any(
        parameter is not None and not parameter.is_meta and parameter.untyped_storage() is storage
        for module in BUILT.instances()
        if isinstance(module, nn.Module)
        for parameter in module._parameters.values()
    )
