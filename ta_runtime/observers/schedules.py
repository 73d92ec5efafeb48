"""Sees the steps of learning rate schedulers, beside those of their optimizers."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import lr_scheduler

from ta_runtime.facts import Loader, Schedule
from ta_runtime.observers.observer import Observer
from ta_runtime.places import Place, here
from ta_runtime.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.session import Session
    from ta_runtime.window import Window

_MOST = 256  # lines and schedulers of a run: of more, the first

# The attributes that say for how many of its steps a scheduler is laid out.
_LENGTHS = {
    "CosineAnnealingLR": "T_max",
    "LinearLR": "total_iters",
    "OneCycleLR": "total_steps",
    "PolynomialLR": "total_iters",
}


@dataclass(slots=True)
class _Followed:
    """A scheduler that a line steps, and the loader at its first call: how many passes and batches it was at."""

    scheduler: weakref.ref[Any]
    schedule: Schedule
    fed: tuple[Loader, int, int] | None


class Schedules(Observer):
    """Watches the schedulers of a session."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._running = False  # a scheduler steps others inside its own step
        self._steps: Register[list[int]] = Register()  # of each optimizer, so far
        self._found: dict[tuple[int, Place], _Followed] = {}

    def attach(self) -> None:
        for kind in vars(lr_scheduler).values():
            if isinstance(kind, type) and "step" in vars(kind):
                self.undo.patch(kind, "step", self._step)

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self._taken(optimizer)[0] += 1

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        self._taken(optimizer)[0] += 1

    def report(self, run: "Run") -> None:
        run.loop.schedules += [followed.schedule for followed in self._found.values()]

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        before, after = self.session.guarded(self._before), self.session.guarded(self._after)

        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            is_initial = getattr(scheduler, "_is_initial", False)
            if torch.compiler.is_compiling() or self._running or is_initial or not self.undo:
                return original(scheduler, *args, **kwargs)
            followed = before(scheduler)
            self._running = True
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                self._running = False
            if followed is not None:
                after(followed, scheduler, bool(args or kwargs))
            return result

        return step

    def _before(self, scheduler: Any) -> "_Followed | None":
        """What is known of the line that steps the scheduler now."""
        place = here()
        key = (id(scheduler), place)
        followed = self._found.get(key)
        if followed is not None and followed.scheduler() is scheduler:
            return followed
        optimizer, built = getattr(scheduler, "optimizer", None), BUILT.get(scheduler)
        if not isinstance(optimizer, torch.optim.Optimizer) or built is None or len(self._found) >= _MOST:
            return None
        schedule = _schedule(scheduler, place, built)
        has_past = not self._taken(optimizer)[0] and bool(optimizer.state)
        schedule.begins = optimizer in BUILT and scheduler.last_epoch == 0 and not has_past
        schedule.first_rate = _rate(optimizer)
        loader = self.session.loaders.current
        fed = (loader, loader.epochs, loader.batches) if loader is not None else None
        followed = self._found[key] = _Followed(weakref.ref(scheduler), schedule, fed)
        return followed

    def _after(self, followed: "_Followed", scheduler: Any, has_argument: bool) -> None:
        schedule, taken = followed.schedule, self._taken(scheduler.optimizer)[0]
        schedule.times += 1
        schedule.has_argument |= has_argument
        schedule.before_first += not taken
        schedule.optimizer_steps = taken
        schedule.rate = _rate(scheduler.optimizer)
        if schedule.times == 1:
            schedule.second_rate = schedule.rate
        if followed.fed is not None:
            loader, epochs, batches = followed.fed
            schedule.passes, schedule.batches = loader.epochs - epochs + 1, loader.batches - batches + 1

    def _taken(self, optimizer: torch.optim.Optimizer) -> list[int]:
        taken = self._steps.get(optimizer)
        if taken is None:
            taken = [0]
            self._steps.add(optimizer, taken)
        return taken


def _schedule(scheduler: Any, place: Place, built: Place) -> Schedule:
    """Its layout; a schedule of transformers is a `LambdaLR` that was given its number of steps."""
    kind = type(scheduler).__name__
    length = getattr(scheduler, _LENGTHS[kind], None) if kind in _LENGTHS else None
    counts_batches = kind == "OneCycleLR"
    if kind == "LambdaLR":
        length = getattr(scheduler.lr_lambdas[0], "keywords", {}).get("num_training_steps")
        counts_batches = length is not None
    return Schedule(place, built, kind, length if isinstance(length, int) else None, counts_batches)


def _rate(optimizer: torch.optim.Optimizer) -> float | None:
    rate = optimizer.param_groups[0].get("lr")
    return rate if isinstance(rate, float) else None
