"""Sees `torch.nn.utils.spectral_norm`, and whether a weight is used in evaluation before its norm was ever estimated.

Its hook estimates the norm of a weight in training mode alone, a little better with each pass; a wrapper around the hook
counts. A layer whose state was loaded, or that is a copy, may bring an estimate with it and is left alone.
"""

import os
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.spectral_norm import SpectralNorm

from ta_runtime.facts import Normalisation
from ta_runtime.measure.kinds import measurable
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here, is_library
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context

_ROUNDS = 8  # of the power iteration that measures a norm, from below
_PASSES = 8  # of one line, that are looked at
_SEVERAL = 2  # samples: one alone is mostly made up, to learn the shape of an output
_TRIALS = {"_run_sanity_check"}  # of Lightning: nobody reads the numbers
_TORCH = str(Path(nn.__file__).parents[1]) + os.sep


class Normalisations(Observer):
    """Watches the hooks of `spectral_norm` that are made while a session is on."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._pending: Register[Place] = Register()
        """Hooks that have not estimated a norm yet, and the line that asked for each."""
        self._found: dict[Place, Normalisation] = {}
        self._layers: Register[bool] = Register()

    def build_spectral_norm(self, call: Call) -> End:
        return self._begun

    def apply_spectral_norm(self, call: Call) -> End:
        return self._called

    def load_spectral_norm(self, call: Call) -> End:
        return self._loaded

    def report(self, run: "Run") -> None:
        run.normalisations = list(self._found.values())

    def _begun(self, call: Call) -> None:
        if not call.raised:
            self._pending.add(call.args[0], here())

    def _called(self, call: Call) -> None:
        hook, module, inputs = call.args
        if call.raised or hook not in self._pending:
            return
        if module.training:
            self._pending.discard(hook)
        else:
            self._note(hook, module, inputs)

    def _loaded(self, call: Call) -> None:
        self._pending.discard(call.args[0].fn)

    def _note(self, hook: SpectralNorm, module: nn.Module, inputs: Any) -> None:
        place = self._pending.get(hook)
        vector, weight = getattr(module, f"{hook.name}_u"), getattr(module, hook.name)
        if place is None or vector.is_inference() or vector._version:  # written to by hand
            self._pending.discard(hook)
            return
        found = self._found.get(place)
        if found is not None and found.passes == _PASSES and module in self._layers:
            return
        if not _has_several(inputs) or not _is_for_the_user():
            return
        if found is None:
            found = self._found[place] = Normalisation(place, here())
            self._measure(found, hook.reshape_weight_to_matrix(weight.detach()))
        found.passes += module in self._layers or not found.layers
        found.layers += module not in self._layers
        self._layers.add(module, True)

    @torch.no_grad()
    def _measure(self, found: Normalisation, weight: Tensor) -> None:
        if not measurable(weight) or not self.session.looks_at(self.session.window):
            return
        weight = weight.float()
        vector = weight[0]
        for _ in range(_ROUNDS):
            vector = weight.T @ (weight @ vector)
            vector = vector / torch.linalg.vector_norm(vector)

        def deliver(values: list[float]) -> None:
            found.norm = values[0]

        self.session.window.readings.scalars([torch.linalg.vector_norm(weight @ vector)], deliver)


def _has_several(inputs: Any) -> bool:
    given = inputs[0] if isinstance(inputs, tuple) and inputs else None
    return isinstance(given, Tensor) and given.dim() > 1 and given.shape[0] >= _SEVERAL


def _is_for_the_user() -> bool:
    """Whether the user's own code called the outermost module: a library that does so looks at shapes, or counts."""
    frame: FrameType | None = sys._getframe(1)
    outermost: str | None = None
    is_called = False
    while frame is not None:
        if frame.f_code.co_name in _TRIALS:
            return False
        filename = frame.f_code.co_filename
        if filename.startswith(_TORCH):
            is_called |= frame.f_code.co_name == "_call_impl"
        elif is_called:
            outermost, is_called = filename, False
        frame = frame.f_back
    return outermost is not None and not is_library(outermost)
