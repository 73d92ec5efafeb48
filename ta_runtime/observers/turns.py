"""Counts the steps of every optimizer and learning rate scheduler that is built, also of those that never make one."""

from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

from ta_runtime.facts import Loader, Scheduled, Stepped
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 256  # optimizers and schedulers of a run: of more, the first


class Turns(Observer):
    """Watches the optimizers and schedulers of a session. A fact outlives what it is about."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._optimizers: Register[Stepped] = Register()
        self._schedulers: Register[Scheduled] = Register()
        self._stepped: list[Stepped] = []
        self._scheduled: list[Scheduled] = []
        self._steps = 0
        self._before: dict[Stepped, int] = {}  # the steps of all optimizers when each was first seen
        self._zeros: dict[Stepped, int] = {}  # the last steps in a row at a rate of 0
        self._first: dict[Stepped, tuple[Loader, int]] = {}  # what it was at in its first step

    def clear(self, call: Call) -> End | None:
        stepped = self._optimizer(call.args[0])
        if stepped is not None and not stepped.steps and _has_gradients(call.args[0]):
            stepped.had_gradients = True
            stepped.cleared += 1
        return None

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self._step(optimizer)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        self._step(optimizer)

    def counted(self, optimizer: torch.optim.Optimizer, steps: int) -> None:
        self._steps += steps
        if (stepped := self._optimizer(optimizer)) is not None:
            stepped.steps += steps
            if self._zeros.get(stepped) and _is_at_zero(optimizer):  # before and after
                self._zeros[stepped] += steps

    def schedule(self, call: Call) -> End | None:
        scheduled = self._scheduler(call.args[0])
        if scheduled is not None and not getattr(call.args[0], "_is_initial", False):
            scheduled.steps += 1
        return None

    def report(self, run: "Run") -> None:
        idle = [optimizer for optimizer in construction.optimizers() if self._is_idle(optimizer)]
        used: set[int] = set()
        if idle:
            others = (one for one in construction.optimizers() if not self._is_idle(one))
            used = {id(parameter) for one in others for parameter in _parameters(one)}
        for optimizer in idle:
            stepped = self._optimizer(optimizer)
            if stepped is not None:
                stepped.had_gradients |= _has_gradients(optimizer)
                stepped.shares |= any(id(parameter) in used for parameter in _parameters(optimizer))
        schedulers = construction.schedulers()
        for scheduler in schedulers:
            scheduled = self._scheduler(scheduler)
            if scheduled is not None:
                scheduled.is_part |= any(_holds(other, scheduler) for other in schedulers)
        kept = {id(scheduled) for scheduled in self._schedulers.values()}
        in_use = {id(scheduled.optimizer) for scheduled in self._scheduled if scheduled.steps}
        for scheduled in self._scheduled:
            scheduled.is_replaced = id(scheduled) not in kept and id(scheduled.optimizer) in in_use
        for stepped in self._stepped:
            stepped.others = self._steps - self._before[stepped] - stepped.steps
        run.loop.optimizers += self._stepped
        run.loop.schedulers += self._scheduled

    def _step(self, optimizer: torch.optim.Optimizer) -> None:
        stepped = self._optimizer(optimizer)
        self._steps += 1
        if stepped is None:
            return
        stepped.steps += 1
        zeros = self._zeros[stepped] = self._zeros.get(stepped, 0) + 1 if _is_at_zero(optimizer) else 0
        stepped.at_zero = max(stepped.at_zero, zeros)
        loader = self.session.loaders.current
        if loader is not None:
            first, epochs = self._first.setdefault(stepped, (loader, loader.epochs))
            if first is loader:
                stepped.passes = loader.epochs - epochs + 1

    def _is_idle(self, optimizer: torch.optim.Optimizer) -> bool:
        stepped = self._optimizer(optimizer)
        return stepped is None or not stepped.steps

    def _optimizer(self, optimizer: Any) -> Stepped | None:
        found = self._optimizers.get(optimizer)
        built = BUILT.get(optimizer) if found is None else None
        if built is None or len(self._stepped) >= _MOST:
            return found
        found = Stepped(built, type(optimizer).__name__)
        self._optimizers.add(optimizer, found)
        self._stepped.append(found)
        self._before[found] = self._steps
        return found

    def _scheduler(self, scheduler: LRScheduler) -> Scheduled | None:
        found = self._schedulers.get(scheduler)
        built = BUILT.get(scheduler) if found is None else None
        optimizer = self._optimizer(getattr(scheduler, "optimizer", None))
        if built is None or optimizer is None or len(self._scheduled) >= _MOST:
            return found
        length = scheduler.T_max if type(scheduler) is CosineAnnealingLR else None
        found = Scheduled(built, type(scheduler).__name__, optimizer, length=length)
        self._schedulers.add(scheduler, found)
        self._scheduled.append(found)
        return found


def _parameters(optimizer: torch.optim.Optimizer) -> list[Any]:
    return list(construction.held(optimizer).values())


def _has_gradients(optimizer: torch.optim.Optimizer) -> bool:
    return any(parameter.grad is not None for parameter in _parameters(optimizer))


def _is_at_zero(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the rates of all groups are the number 0; a tensor is not read, as that may wait for its device."""
    rates = (group.get("lr") for group in optimizer.param_groups)
    return all(type(rate) in (float, int) and rate == 0 for rate in rates)


def _holds(other: LRScheduler, scheduler: LRScheduler) -> bool:
    """Whether a scheduler keeps another one among its attributes."""
    return any(
        value is scheduler or (isinstance(value, (list, tuple)) and any(one is scheduler for one in value))
        for value in vars(other).values()
    )
