"""Records what a run saves and loads: `torch.save` and `torch.load`, `state_dict` and `load_state_dict`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ta_lint.core.protocol import Action
from ta_runtime.observers.patching import Undo
from ta_runtime.trace import titles
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.wrapping import Args, Kwargs, Said, Wrapping


class Saving:
    """Watches the outermost of these calls between `attach` and `detach`."""

    def __init__(self, wrapping: Wrapping, layers: LayerNames) -> None:
        self._wrapping, self._layers = wrapping, layers
        self._undo = Undo()

    def attach(self) -> None:
        telling = self._wrapping.telling
        self._undo.recode(torch.serialization.save, telling(_of_files(Action.SAVE, "torch.save")))
        self._undo.recode(torch.serialization.load, telling(_of_files(Action.LOAD, "torch.load")))
        for kind, subject in (
            (nn.Module, self._layers.subject),
            (torch.optim.Optimizer, self._layers.of_optimizer),
        ):
            for action, method in ((Action.SAVE, "state_dict"), (Action.LOAD, "load_state_dict")):
                self._undo.patch(kind, method, telling(_of_states(action, kind, method, subject)))

    def detach(self) -> None:
        self._undo()


def _of_files(action: Action, name: str) -> Callable[[Args, Kwargs], Said]:
    said = (action, name, "")
    return lambda args, kwargs: said


def _of_states(
    action: Action, kind: type, method: str, subject: Callable[[Any], str]
) -> Callable[[Args, Kwargs], Said]:
    def begin(args: Args, kwargs: Kwargs) -> Said:
        owner = kind if kind is nn.Module else type(args[0])
        return action, f"{titles.of_class(owner)}.{method}", subject(args[0])

    return begin
