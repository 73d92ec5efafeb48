"""Looks, on structural steps (`facts.Step.structural`), for parameters that get gradients and that no optimizer holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ta_runtime.facts import Membership, Model
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.observers.loads import LOADED
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.places import Place
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.probes.sources import of_class

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

_ELEMENTS = 256
"""Of a parameter that nobody holds, so many are kept from the first look on, to see whether anything writes to it."""
_MOST = 64
"""Parameters of one model that are looked at so: of more, the first."""
_MOST_STEPS = 8
"""Steps of optimizers in one window in which all that is held is gone through: of more optimizers, those that step first."""
_EARLY = 256
"""Optimizer steps after which a layer is settled before the run is over: another phase of the training may build its optimizer
later, and the layer would then have been left out on purpose for a while."""
_PATIENCE = 8
"""So often a layer that nobody holds asks for the next step to be looked at as well."""


@dataclass(slots=True)
class _Watch:
    """A parameter that nobody was seen to hold."""

    kept: Tensor
    steps: int = 0
    gradient: float = 0.0
    changed: bool = False
    last: float = 0.0

    def looked(self, gradient: float, changed: float) -> None:
        if gradient != self.last and gradient > 0:  # one that nobody clears or adds to stays as it is
            self.steps += 1
        self.last = gradient
        self.gradient = max(self.gradient, gradient)
        self.changed |= changed > 0


@dataclass(frozen=True, slots=True)
class _Look:
    """A layer at the last look, without itself; its watches fill as their numbers arrive."""

    place: Place
    name: str
    trainable: int
    held: int
    is_outermost: bool
    is_fresh: bool
    watches: list[_Watch]
    optimizer: Place | None
    stale: int
    looks: int
    with_gradient: int

    def membership(self, *, is_settled: bool) -> Membership:
        watches = [] if any(watch.changed for watch in self.watches) else self.watches
        got = [watch for watch in watches if watch.steps]
        return Membership(
            self.place,
            self.name,
            self.trainable,
            self.held,
            self.is_outermost,
            self.is_fresh,
            is_settled,
            looks=self.looks,
            with_gradient=self.with_gradient,
            left_out=len(got),
            steps=min((watch.steps for watch in got), default=0),
            gradient=max((watch.gradient for watch in got), default=None),
            optimizer=self.optimizer,
            stale=self.stale,
        )


class Memberships(Observer):
    """Compares what the models that run in training have with what the optimizers hold."""

    def attach(self) -> None:
        self._watches: Register[_Watch] = Register()
        self._held_once: Register[bool] = Register()
        self._looks: dict[tuple[Place, str], _Look] = {}
        self._stepped: Register[bool] = Register()  # optimizers
        self._steps = 0  # of optimizers in this window

    def begin(self, window: "Window") -> None:
        self._steps = 0

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if window.step is None or not window.step.structural:
            return
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return
        self._stepped.add(optimizer, True)
        built = construction.optimizers()
        others = self._stepped.instances()
        optimizers = list({id(known): known for known in (*built, *others)}.values())
        seen: set[int] = set()
        for forward in window.step.training_forwards:
            model = forward.model
            if id(model.module) not in seen:
                seen.add(id(model.module))
                self._look(model, optimizers, optimizer, window)

    def report(self, run: "Run") -> None:
        is_settled = run.over or run.steps >= _EARLY
        run.memberships = [look.membership(is_settled=is_settled) for look in self._looks.values()]

    @torch.no_grad()
    def _look(
        self,
        model: Model,
        optimizers: list[torch.optim.Optimizer],
        stepping: torch.optim.Optimizer,
        window: "Window",
    ) -> None:
        holders = {
            id(p): known for known in optimizers for group in known.param_groups for p in group["params"]
        }
        left: list[nn.Parameter] = []
        for parameter in model.module.parameters():
            if id(parameter) in holders:
                self._held_once.add(parameter, True)
            elif parameter.requires_grad and parameter.grad is not None and parameter not in self._held_once:
                left.append(parameter)
        watched = self._watch(left[:_MOST], window)
        stale = _stale(optimizers) if left else []
        of_model = (holders[id(p)] for p in model.module.parameters() if id(p) in holders)
        holder = stale[0][0] if stale else next(of_model, stepping)
        outermost: list[str] = []
        for layer in model.own_layers:
            place = BUILT.get(layer.module)
            if place is None or not any(True for _ in layer.module.parameters()):
                continue
            trainable = [p for p in layer.module.parameters() if p.requires_grad]
            held = sum(id(p) in holders for p in trainable)
            alone = bool(trainable) and not held
            inside = any(not name or layer.name.startswith(f"{name}.") for name in outermost)
            if alone and not inside:
                outermost.append(layer.name)
            before = self._looks.get((place, layer.name))
            looks = before.looks + 1 if before is not None else 1
            if alone and looks < _PATIENCE:
                self.session.history.is_waiting = True
            self._looks[place, layer.name] = _Look(
                place=place,
                name=layer.name,
                trainable=len(trainable),
                held=held,
                is_outermost=alone and not inside,
                is_fresh=alone and _is_fresh(layer.module),
                watches=[watched[id(p)] for p in trainable if id(p) in watched],
                optimizer=BUILT.get(holder),
                stale=sum(count for _, count in stale),
                looks=looks,
                with_gradient=sum(p.grad is not None for p in trainable),
            )

    def _watch(self, left: list[nn.Parameter], window: "Window") -> dict[int, _Watch]:
        """Ask for the gradients of parameters, and for whether anything wrote to them since they were first seen."""
        watched: dict[int, _Watch] = {}
        gradients: list[Tensor] = []
        changes: list[Tensor] = []
        for parameter in left:
            assert parameter.grad is not None
            gradient, values = local(parameter.grad), local(parameter.detach())
            if not measurable(gradient) or not measurable(values):
                continue
            now = values.reshape(-1)[:_ELEMENTS]
            watch = self._watches.get(parameter)
            if watch is None or watch.kept.shape != now.shape or watch.kept.device != now.device:
                watch = _Watch(now.clone())
                self._watches.add(parameter, watch)
            watched[id(parameter)] = watch
            gradients.append(gradient)
            changes.append(torch.count_nonzero(now != watch.kept).float())
        if watched:
            watches, count = list(watched.values()), len(watched)

            def deliver(values: list[float]) -> None:
                for watch, norm, changed in zip(watches, values[:count], values[count:], strict=True):
                    watch.looked(norm, changed)

            window.readings.norms(gradients, deliver, beside=changes)
        return watched


def _stale(optimizers: Iterable[torch.optim.Optimizer]) -> list[tuple[torch.optim.Optimizer, int]]:
    """The optimizers that hold parameters which no module has and which have no gradient, and how many."""
    of_modules = {
        id(p)
        for module in BUILT.instances()
        if isinstance(module, nn.Module)
        for p in module._parameters.values()
    }
    found = []
    for optimizer in optimizers:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        count = sum(isinstance(p, nn.Parameter) and p.grad is None and id(p) not in of_modules for p in held)
        if count:
            found.append((optimizer, count))
    return found


def _is_fresh(module: nn.Module) -> bool:
    """Whether every part was built here, by torch or the user, and nothing was loaded into it."""
    return all(
        part in BUILT
        and part not in LOADED
        and (type(part).__module__.startswith("torch.nn.") or of_class(type(part)) is not None)
        for part in module.modules()
    )
