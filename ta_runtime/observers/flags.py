"""Looks, on structural steps (`facts.Step.structural`), for modules that have an attribute `requires_grad`, and at their parameters."""

from typing import TYPE_CHECKING

import torch

from ta_lint.events.flag import Flag
from ta_runtime.naming import Layer
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import Place
from ta_runtime.probes.sources import assigned_to, settings_of

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window


class Flags(Observer):
    """Keeps one `Flag` for each line that sets one; what contradicted its parameters once does so."""

    def attach(self) -> None:
        self._flags: dict[Place, Flag] = {}

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if window.step is None or not window.step.structural or window.stepped:
            return
        for model in {id(one.model.module): one.model for one in window.step.training_forwards}.values():
            if any("requires_grad" in vars(module) for module in model.module.modules()):
                for layer in model.layers:
                    self._look(layer)

    def report(self, run: "Run") -> None:
        run.flags = list(self._flags.values())

    def _look(self, layer: Layer) -> None:
        flag = vars(layer.module).get("requires_grad")
        parameters = list(layer.module.parameters())
        if not isinstance(flag, bool) or not parameters:
            return
        learning = sum(parameter.requires_grad for parameter in parameters)
        places = _set_at(layer)
        fits = flag is bool(learning)
        for place in places if fits else places or [layer.place]:
            known = self._flags.get(place)
            if known is None or known.value is bool(known.learning):
                self._flags[place] = Flag(place, flag, len(parameters), learning)


def _set_at(layer: Layer) -> list[Place]:
    """The lines that set it, by the name under which the layer was created, or by its name in the model."""
    path = layer.place.path
    owners = dict.fromkeys((assigned_to(layer.place), f"model.{layer.name}" if layer.name else ""))
    return [place for owner in owners if owner for place in settings_of("requires_grad", owner, path)]
