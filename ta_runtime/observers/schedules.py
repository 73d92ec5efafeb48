"""Sees the steps of learning rate schedulers, beside those of their optimizers."""

import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import ChainedScheduler

from ta_runtime.facts import Loader, SchedulerCalls
from ta_runtime.observers.cadences import note_cadence
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

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
    schedule: SchedulerCalls
    fed: tuple[Loader, int, int] | None
    made: int = 0
    """The steps that its optimizer had made at its last call."""
    skipped: int = 0
    """And those that a scaler had left out."""


class Schedules(Observer):
    """Watches the schedulers of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._running = False  # a scheduler steps others inside its own step
        self._steps: Register[list[int]] = Register()  # of each optimizer so far, and how many were left out
        self._found: dict[tuple[int, Place], _Followed] = {}

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self._taken(optimizer)[0] += 1

    def counted(self, optimizer: torch.optim.Optimizer, steps: int) -> None:
        self._taken(optimizer)[0] += steps

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        taken = self._taken(optimizer)
        taken[0] += 1
        taken[1] += 1

    def report(self, run: "Run") -> None:
        for followed in self._found.values():
            note_cadence(followed.schedule)
            run.loop.schedules.append(followed.schedule)

    def schedule(self, call: Call) -> End | None:
        if self._running or getattr(call.args[0], "_is_initial", False):
            return None
        self._running = True
        return partial(self._stepped, followed=self._before(call.args[0]))

    def _stepped(self, call: Call, followed: "_Followed | None") -> None:
        self._running = False
        if followed is not None and not call.raised:
            self._after(followed, call.args[0], bool(call.args[1:] or call.kwargs))

    def _before(self, scheduler: Any) -> "_Followed | None":
        """What is known of the line that steps the scheduler now."""
        place = here()
        key = (id(scheduler), place)
        followed = self._found.get(key)
        if followed is not None and followed.scheduler() is scheduler:
            return followed
        if isinstance(scheduler, ChainedScheduler):  # what it steps begins before its own step
            return None
        optimizer, built = _optimizer(scheduler), BUILT.get(scheduler)
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
        optimizer = _optimizer(scheduler)
        schedule, taken = followed.schedule, self._taken(optimizer)[0] + self.session.slept
        schedule.times += 1
        schedule.has_argument |= has_argument
        schedule.before_first = (schedule.before_first or 0) + (not taken)
        schedule.optimizer_steps = taken
        rate = _rate(optimizer)
        self._note_skip(followed, optimizer, taken, rate)
        schedule.rate = rate
        if schedule.times == 1:
            schedule.second_rate = schedule.rate
        if followed.fed is not None:
            loader, epochs, batches = followed.fed
            schedule.passes, schedule.batches = loader.epochs - epochs + 1, loader.batches - batches + 1

    def _note_skip(
        self, followed: "_Followed", optimizer: torch.optim.Optimizer, taken: int, rate: float | None
    ) -> None:
        """Whether the optimizer made no step since the call before, as a scaler left it out."""
        schedule, skipped = followed.schedule, self._taken(optimizer)[1]
        before = schedule.first_rate if schedule.times == 1 else schedule.rate
        rises = rate is not None and before is not None and rate > before
        is_skip = skipped > followed.skipped and taken - skipped == followed.made
        schedule.skipped += is_skip
        schedule.rising += rises
        schedule.skipped_rising += is_skip and rises
        followed.made, followed.skipped = taken - skipped, skipped

    def _taken(self, optimizer: torch.optim.Optimizer) -> list[int]:
        taken = self._steps.get(optimizer)
        if taken is None:
            taken = [0, 0]
            self._steps.add(optimizer, taken)
        return taken


def _optimizer(scheduler: Any) -> Any:
    """The optimizer of a scheduler: the one inside, where Accelerate has wrapped it before the scheduler was made."""
    optimizer = getattr(scheduler, "optimizer", None)
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer


def _schedule(scheduler: Any, place: Place, built: Place) -> SchedulerCalls:
    """Its layout; a schedule of transformers is a `LambdaLR` that was given its number of steps."""
    kind, length = type(scheduler).__name__, _length(scheduler)
    counts_batches = kind == "OneCycleLR" or (kind == "LambdaLR" and length is not None)
    return SchedulerCalls(place, built, kind, length, counts_batches)


def _length(scheduler: Any) -> int | None:
    """For how many of its steps a scheduler is laid out; of a sequence, up to the end of the last."""
    kind = type(scheduler).__name__
    if kind == "SequentialLR":
        last = _length(scheduler._schedulers[-1])
        return scheduler._milestones[-1] + last if last is not None else None
    if kind == "LambdaLR":
        length = getattr(scheduler.lr_lambdas[0], "keywords", {}).get("num_training_steps")
    else:
        length = getattr(scheduler, _LENGTHS.get(kind, ""), None)
    return length if isinstance(length, int) else None


def _rate(optimizer: torch.optim.Optimizer) -> float | None:
    rate = optimizer.param_groups[0].get("lr")
    return rate if isinstance(rate, float) else None
