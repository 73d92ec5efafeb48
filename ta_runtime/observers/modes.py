"""Sees models put into evaluation mode and back, and what runs in which mode.

`train`, which `eval` calls, has no hook: it is wrapped, and that is all that is always on. Forward passes are looked at
on audited steps, and for a few passes where an evaluation may begin: after `eval()`, and where a loader is iterated.
"""

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import ModeHistory, Run, Switch
from ta_runtime.observers.dropouts import Dropouts
from ta_runtime.observers.inferences import Inferences, depends_on_mode, is_idle
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_LOOKS = 32
"""How often the passes of a possible evaluation are looked at outside of audited steps."""
_PASSES = 4
"""How many of them at a time."""
_MOST = 64  # of one audited step
_OWN = 8  # models in evaluation mode that are followed


@dataclass(slots=True)
class _Off:
    """A model that is in evaluation mode, by a switch."""

    switch: Switch
    module: "weakref.ref[nn.Module]"
    parameters: set[int]
    passes: int = 0
    backwards: int = 0
    trained: bool = False


class ModeObserver(Observer):
    """Watches the modes of the models of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._dropouts = Dropouts(session)
        self._inferences = Inferences(session, self._passed)
        self._switching = False
        self._asked: Place | None = None  # where `eval` was called, which calls `train`
        self._switches: dict[tuple[Place, bool], Switch] = {}  # by whether the mode changes anything
        self._off: list[_Off] = []
        self._stepped: set[int] = set()  # ids of optimizers
        self._looks = 0

    def attach(self) -> None:
        self.undo.append(self._look_away)

    def begin(self, window: "Window") -> None:
        looks = window.step is not None and not self.session.runs_compiled
        if not looks or self._inferences.alone:
            self._look_away()
        if looks:
            self._look(_MOST, alone=False)

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if self._inferences.attached:
            self._inferences.passed(module, args, result)

    def compiles(self) -> None:
        self._look_away()

    def epoch(self, call: Call) -> None:
        self._look_soon()

    @property
    def settled(self) -> bool:
        return not self._off

    def before_backward(self, loss: Tensor) -> None:
        self._inferences.backwards += 1
        for off in self._off:
            off.backwards += 1

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if id(optimizer) not in self._stepped:
            self._stepped.add(id(optimizer))
            self._inferences.trained |= construction.held(optimizer).keys()
        if self._off:
            self._off = [off for off in self._off if not self._is_settled(off, optimizer)]

    def loads_state(self, module: nn.Module, state: Any) -> None:
        self._inferences.loaded.add(module, True)

    def report(self, run: Run) -> None:
        self._inferences.deliver(wait=run.over)
        recorded = self._inferences.recorded if run.infers and not self._inferences.backwards else {}
        switches = self._switches
        run.switches = [
            one for (place, depends), one in switches.items() if depends or (place, True) not in switches
        ]
        self._inferences.compare_loaders()
        run.inferences = [*self._inferences.found.values(), *recorded.values()]
        run.modes = ModeHistory(
            list(self._dropouts.found.values()),
            list(self._inferences.evaluated.values()),
        )

    # -- looking at what runs ---------------------------------------------------------------------------------

    def _look(self, passes: int, *, alone: bool) -> None:
        self._inferences.begin(passes)
        if not self._inferences.attached:
            self._inferences.attach(alone=alone)
            self._dropouts.attach()

    def _look_away(self) -> None:
        if self._inferences.attached:
            self._inferences.detach()
            self._dropouts.detach()

    def _look_soon(self) -> None:
        """An evaluation may begin here."""
        if self._inferences.attached:
            self._inferences.left = max(self._inferences.left, _PASSES)
        elif self._looks < _LOOKS and not self.session.compilers.used:
            self._looks += 1
            self._look(_PASSES, alone=True)

    def _passed(self, module: nn.Module, training: bool, records: bool) -> None:
        for off in self._off:
            if not (off.backwards or off.trained) and off.module() is module:
                off.passes += 1
                off.switch.evaluated |= not records or off.passes > 1

    # -- switches ---------------------------------------------------------------------------------------------

    def train(self, call: Call) -> End | None:
        if self._switching:
            return None
        self._note(call.args[0], call.given(1, "mode", True))
        self._switching = True
        return self._switched

    def _switched(self, call: Call) -> None:
        self._switching = False

    def eval(self, call: Call) -> End | None:
        if self._switching:
            return None
        self._asked = here()  # a `train` of the user's own may come in between
        return self._evaluates

    def _evaluates(self, call: Call) -> None:
        self._asked = None

    def _note(self, module: nn.Module, mode: bool) -> None:
        if self._inferences.left <= 0:
            self._look_away()
        steps = self.session.step_count
        self._inferences.settled.add(module, True)
        if mode:
            if not module.training or steps:
                self._inferences.switched.add(module, steps)
            return
        self._look_soon()
        if module.training and steps > (self._inferences.switched.get(module) or 0):
            self._switch_off(module)

    def _switch_off(self, module: nn.Module) -> None:
        """A model goes into evaluation mode that was in training mode while an optimizer stepped."""
        if len(self._off) == _OWN or self._is_part(module) or not module._modules:
            return
        place = self._asked or here()
        layers = sum(depends_on_mode(layer) for layer in module.modules() if layer.training)
        switch = self._switches.setdefault((place, layers > 0), Switch(place, type(module).__name__, layers))
        switch.idle |= any(map(is_idle, module.modules()))
        parameters = {id(parameter) for parameter in module.parameters()}
        self._off = [off for off in self._off if off.module() is not module]
        self._off.append(_Off(switch, weakref.ref(module), parameters))

    def _is_part(self, module: nn.Module) -> bool:
        """Whether it belongs to a model that stays in training mode, as a part that is frozen does."""
        own = sum(1 for _ in module.parameters())
        return any(
            model is not module
            and model.training
            and any(part is module for part in model.modules())
            and sum(1 for _ in model.parameters()) > own
            for model in self.session.names.models
        )

    def _is_settled(self, off: _Off, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a model is gone, or is trained again in training mode; notes the steps that train it otherwise."""
        module = off.module()
        if module is None:
            return True
        trained = off.backwards > 0 and any(
            id(parameter) in off.parameters and parameter.grad is not None
            for group in optimizer.param_groups
            for parameter in group["params"]
        )
        if not trained:
            return False
        off.backwards, off.trained = 0, True
        if module.training or (not off.switch.trained and any(part.training for part in module.modules())):
            off.switch.restored += 1
            return True
        off.switch.trained += 1
        off.switch.trained_at = off.switch.trained_at or here()
        return False
