"""Sees modules whose class has a `train()` of its own, and whether it was called before they are trained.

Theirs ends in `nn.Module.train`; what it would have done is read from its source (`rehearsals`).
"""

from typing import TYPE_CHECKING

import torch
from torch import nn

from ta_runtime.facts import Override
from ta_runtime.observers.inferences import depends_on_mode
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.rehearsals import own_train, rehearsed
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_LOOKS = 4  # optimizer steps at which it is seen whether they train a module


class _Untold:
    """A module that has not been told its mode, and what was seen of it."""

    __slots__ = ("found", "looks")

    def __init__(self) -> None:
        self.looks = _LOOKS
        self.found: Override | None = None


class Overrides(Observer):
    """Watches the modules that are built while a session is on."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._untold: Register[_Untold] = Register()

    def attach(self) -> None:
        self.undo.append(construction.watch(self.session.guarded(self._built)))

    def report(self, run: "Run") -> None:
        for module in self._untold.instances():
            untold = self._untold.get(module)
            if untold is not None and untold.found is not None:
                run.overrides.append(untold.found)

    @property
    def settled(self) -> bool:
        return all(untold.found is not None or not untold.looks for untold in self._untold.values())

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if not len(self._untold):
            return
        for module in self._untold.instances():
            untold = self._untold.get(module)
            if untold is not None and untold.looks and untold.found is None:
                untold.looks -= 1
                untold.found = _override(module, optimizer)

    def _built(self, module: nn.Module) -> None:
        """Only of what is being built: a copy may be of one that was told."""
        if "_parameters" in vars(module) or own_train(type(module)) is None:
            return
        self._untold.add(module, _Untold())

    def train(self, call: Call) -> None:
        self._untold.discard(call.args[0])


def _override(module: nn.Module, optimizer: torch.optim.Optimizer) -> Override | None:
    """What the `train()` of a module would do to what a step of this optimizer trains; None if nothing, or unknown."""
    held = construction.held(optimizer).keys()
    trained = {id(tensor) for tensor in module.parameters() if tensor.grad is not None} & held
    method = own_train(type(module))
    found = rehearsed(module, method) if module.training and trained and method is not None else None
    if method is None or found is None:
        return None
    parameters = len(trained & found.parameters.keys())
    layers = sum(map(depends_on_mode, found.layers.values()))
    if not parameters + layers:
        return None
    code = method.__code__
    defined = Place(code.co_filename, code.co_firstlineno)
    return Override(here(), defined, type(module).__name__, parameters, layers)
