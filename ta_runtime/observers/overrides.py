"""Sees modules whose class has a `train()` of its own, and whether it was called before they are trained.

Only while there are such modules is `nn.Module.train` wrapped, which their own ends in; what theirs would have done is
read from its source (`rehearsals`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ta_runtime.facts import Override
from ta_runtime.observers import construction
from ta_runtime.observers.inferences import depends_on_mode
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.rehearsals import own_train, rehearsed
from ta_runtime.places import Place, here
from ta_runtime.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.session import Session
    from ta_runtime.window import Window

_LOOKS = 4  # optimizer steps at which it is seen whether they train a module


class _Untold:
    """A module that has not been told its mode, and what was seen of it."""

    __slots__ = ("found", "looks")

    def __init__(self) -> None:
        self.looks = _LOOKS
        self.found: Override | None = None


class Overrides(Observer):
    """Watches the modules that are built while a session is on."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._untold: Register[_Untold] = Register()
        self._wrapped = False

    def attach(self) -> None:
        self.undo.append(construction.watch(self.session.guarded(self._built)))

    def detach(self) -> None:
        super().detach()
        self._wrapped = False

    def report(self, run: "Run") -> None:
        for module in self._untold.instances():
            untold = self._untold.get(module)
            if untold is not None and untold.found is not None:
                run.overrides.append(untold.found)

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
        if not self._wrapped:
            self._wrapped = True
            self.undo.patch(nn.Module, "train", self._train)

    def _train(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(module: nn.Module, mode: bool = True) -> Any:
            if self._wrapped and module in self._untold and not torch.compiler.is_compiling():
                self._untold.discard(module)
            return original(module, mode)

        return train


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
