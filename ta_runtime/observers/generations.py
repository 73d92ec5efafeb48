"""Sees the prompts from which models of transformers generate, the first of a run."""

import sys
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import Prompts
from ta_runtime.measure.scalars import Readings
from ta_runtime.observers import tokens
from ta_runtime.observers.language import base
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.generation import LIBRARY
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from torch import nn

    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context

_RULES = {"TA157", "TA159", "TA160"}
_MOST = 64  # calls of a run that are looked at
_LINES = 32


class Generations(Observer):
    """Watches `generate`, from when the run has loaded it."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = not _RULES.isdisjoint(session.settings.rules)
        self._wants_markers = "TA160" in session.settings.rules
        self._watching = False
        self._found: dict[Place, Prompts] = {}
        self._seen = 0
        self._readings = Readings()

    def attach(self) -> None:
        if self._wanted:
            self.undo.append(construction.watch(self.session.guarded(self._built)))
            self._watch()

    def _built(self, module: "nn.Module") -> None:
        if not self._watching:
            self._watch()

    def _watch(self) -> None:
        if LIBRARY in sys.modules:
            self._watching = True
            self._listen("generate", self._generates)

    def report(self, run: "Run") -> None:
        if run.over or self._readings.arrived:
            self._readings.deliver()
        run.language.prompts = list(self._found.values())

    def _generates(self, call: Call) -> None:
        given = call.kwargs.get("input_ids", call.given(1, "inputs"))
        if type(given) is not Tensor or given.dim() != 2 or not given.numel() or given.is_meta:
            return
        if self._seen == _MOST or given.is_floating_point():
            return
        self._seen += 1
        with torch.no_grad():
            self._note(call, given)

    def _note(self, call: Call, ids: Tensor) -> None:
        place = here()
        found = self._found.get(place)
        if found is None:
            if len(self._found) == _LINES:
                return
            found = self._found[place] = Prompts(place)
        model = base(call.args[0])
        special = self.session.tokenizers.special(model)
        mask = call.kwargs.get("attention_mask")
        attended = tokens.attended(ids, mask, special)
        found.rows += len(ids)
        if (
            attended is not None and self._wants_markers and self.session.step_count
        ):  # before, it has learnt no markers
            found.markers.models.add(id(model))
            holding = tokens.holding(ids, attended, self.session.tokenizers.markers)
            tokens.add_markers(found.markers, len(ids), holding, self._readings)
        counts: dict[str, Tensor] = {}
        if attended is not None and special.begin is not None:
            counts |= tokens.begins(ids, attended, special.begin)
        decodes = not getattr(model.config, "is_encoder_decoder", True)
        if attended is not None and decodes and len(ids) > 1:
            counts["padded"] = (~attended).any(dim=1).sum()
            counts["padded_after"] = (~attended[:, -1]).sum()
        tokens.add(found, counts, self._readings)
        self._readings.send()
