"""How often learning rate schedulers step, and what their lengths count."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.factors import Count, Factors, factors_of
from ta_lint.dryrun.stubs.torch.data import LOADER
from ta_lint.dryrun.stubs.torch.lengths import Plan
from ta_lint.dryrun.values import Object, Place, Sequence, Table, Value
from ta_lint.events.event import Event
from ta_lint.events.loop import SchedulerCalls, Unit

EPOCHS, BATCHES = 4, 100
"""Those of a training, and of each of its epochs, at least, if nobody knows how many there are."""
SHORT, FAST = 10, 0.9
"""Steps between two falls of a rate that are fewer than the batches of an epoch, and such a fall."""
NEAR = 0.1
"""How far a length may be from all batches: it is rounded, and a warm-up may come before it."""

Loops = tuple[Place, ...]


@dataclass(slots=True)
class LoopCounts:
    """How many passes the loops of a program take, and how many batches they have."""

    passes: dict[Place, Factors | None] = field(default_factory=dict)
    """Of each loop; None where that differs."""
    known: dict[Value, int] = field(default_factory=dict)
    """How many batches loaders have, where that is known."""
    trained: set[Value] = field(default_factory=set)
    """What loops go over in which an optimizer steps."""
    shares: dict[Value, Event] = field(default_factory=dict)
    """Where processes get their shares of the batches of a loader that were counted before, and never after."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> "LoopCounts":
        """Those of these events."""
        found, over = cls(), dict[Place, Value]()
        for event in events:
            if event.action == "bound":
                loop, count = event.detail["loop"], factors_of(event.detail["bound"])
                found.passes[loop] = count if found.passes.get(loop, count) == count else None
                over[loop] = event.subject
            elif event.action == Action.EPOCH and event.detail["length"] is not None:
                found.known[event.subject] = event.detail["length"]
            elif event.action == "share":
                found.shares[event.subject] = event
            elif event.action == "count":
                found.shares.pop(event.subject, None)
            elif event.action == Action.STEP:
                found.trained.update(over[loop] for loop, _ in event.passes if loop in over)
        return found

    def total(self, loops: Loops) -> Factors | None:
        """The passes of all these loops together."""
        found = Factors()
        for loop in loops:
            count = self.passes.get(loop)
            if count is None:
                return None
            found = found.times(self.resolved(count))
        return found

    def resolved(self, given: Factors) -> Factors:
        """The same with numbers for the lengths of loaders that are known."""
        for one in given.powers:
            if isinstance(one, Count) and one.of in self.known:
                number = Factors(float(self.known[one.of]), {one: -1})
                given = given.times(number) if given.powers[one] > 0 else given.times(number, -1)
        return given


def note_cadence(
    schedule: SchedulerCalls, calls: list[Event], steps: list[Event], built: Event | None, counts: LoopCounts
) -> None:
    """Say what a scheduler steps for, and what it is made for, if all of its calls and all steps of its optimizer are in the same loops."""
    plan: Plan = built.detail["plan"] if built is not None else Plan(None, None)
    length = None if plan.length is None else factors_of(plan.length)
    share = None if length is None else _shared(length, counts)
    schedule.shared = None if share is None else position(share)
    theirs = [step for step in steps if step.entry is calls[0].entry and _may_both(calls[-1], step)]
    outer = 0 if built is None or built.entry is not calls[0].entry else len(built.passes)
    around, inner = ({_loops(one)[outer:] for one in several} for several in (calls, theirs))
    if len(around) != 1 or len(inner) != 1:
        return
    own, data = around.pop(), inner.pop()
    schedule.steps_per = _cadence(own, data, calls, theirs)
    if schedule.steps_per is None:
        return
    epochs = own if schedule.steps_per is Unit.EPOCH else own[:-1]
    if length is not None:
        _note_length(schedule, counts.resolved(length), counts, epochs, data[len(epochs) :])
        if schedule.kind == "StepLR" and epochs and (plan.gamma or 1) <= FAST and _is_short(length):
            schedule.length_in = Unit.EPOCH
    if epochs and plan.gamma is not None:
        schedule.passes = _least(counts.total(epochs), EPOCHS)
        schedule.batches = schedule.passes * _least(counts.total(data[len(epochs) :]), BATCHES)
        _note_decay(schedule, plan.gamma, length)
    elif epochs:
        schedule.passes, schedule.batches = EPOCHS, EPOCHS * BATCHES


def _cadence(own: Loops, data: Loops, calls: list[Event], steps: list[Event]) -> Unit | None:
    """What a scheduler in some loops steps for, whose optimizer steps in others."""
    if own and own == data:
        waits = _waits(calls)
        if waits == {None}:
            return Unit.BATCH if all(call.in_each_pass for call in calls) else None
        return Unit.STEP if waits == _waits(steps) and None not in waits else None
    if own and own == data[: len(own)] and own != data and all(call.in_each_pass for call in calls):
        return Unit.EPOCH
    return None


def _may_both(call: Event, step: Event) -> bool:
    """Whether no condition holds for one of two that fails for the other."""
    return all(step.path.get(condition, holds) is holds for condition, holds in call.path.items())


def _waits(events: list[Event]) -> set[Any]:
    """What lets these happen every few passes of their loop, of which the first may be known not to be one."""
    later = [event for event in events if event.passes[-1][1] > 0]
    return {event.waits for event in later or events}


def _note_length(
    schedule: SchedulerCalls, length: Factors, counts: LoopCounts, epochs: Loops, data: Loops
) -> None:
    around, each = counts.total(epochs), counts.total(data)
    steps = schedule.kind in ("StepLR", "MultiStepLR")
    loaders = _loaders(length)
    counted = [one for one in length.counted if not isinstance(one, Sequence | Table)]
    whole = length if around is None or not epochs else length.times(around, -1)
    if around is not None and each is not None:
        rest = length.times(around.times(each), -1)
        if not rest.powers and rest.constant is not None and abs(rest.constant - 1) <= NEAR and not steps:
            schedule.length_in = Unit.BATCH
            return
        is_divided = bool(counted and rest.powers) and max(rest.powers.values()) < 0
        if is_divided and not any(isinstance(one, Count) for one in rest.powers):
            schedule.length_in = Unit.STEP
            return
    if counted:
        is_all = whole.constant == 1 and _is_all(whole, counts.passes.get(data[-1]) if data else None)
        schedule.length_in = Unit.BATCH if is_all else Unit.STEP
        schedule.is_of_other = bool(loaders) and not any(map(counts.trained.__contains__, loaders))
    elif epochs and around is not None and length.powers == around.powers:
        is_same = length.constant == around.constant and not steps
        if (
            schedule.kind == "MultiStepLR" and not length.powers
        ):  # it falls for the last time before so many epochs are over
            is_same = (length.constant or 0) <= (around.constant or 0)
        is_part = bool(length.powers) and (length.constant is None or length.constant <= 1)
        schedule.length_in = Unit.EPOCH if is_same or is_part else None


def _is_short(length: Factors) -> bool:
    """Whether it is a number that is smaller than the batches of an epoch."""
    return not length.powers and 1 < (length.constant or 0) <= SHORT


def _shared(length: Factors, counts: LoopCounts) -> Place | None:
    """Where processes get their shares of what it counts, if it is that times the number of processes."""
    for one in length.counted:
        share = counts.shares.get(one)
        among = None if share is None else factors_of(share.detail["among"])
        if share is not None and among is not None and among.powers.items() <= length.powers.items():
            place: Place = share.place
            return place
    return None


def _is_all(length: Factors, batches: Factors | None) -> bool:
    """Whether it is the number of all batches, and not of some of them: not divided, or samples by the size of a batch, where it is known
    what the loop over the batches goes over.
    """
    below = -sum(power for power in length.powers.values() if power < 0)
    over = [] if batches is None else _loaders(batches)
    return not below or (below == 1 and bool(over) and not _loaders(length))


def _loaders(number: Factors) -> list[Value]:
    return [one for one in number.counted if isinstance(one, Object) and one.cls.is_a(LOADER)]


def _note_decay(schedule: SchedulerCalls, gamma: float, length: Factors | None) -> None:
    """What is left of the rate, if it is multiplied by so much each time."""
    if schedule.kind == "ExponentialLR":
        schedule.left = gamma**schedule.batches
    elif schedule.kind == "StepLR" and length is not None and length.constant and not length.powers:
        schedule.left = gamma ** (schedule.batches // length.constant)


def _least(passes: Factors | None, least: int) -> int:
    """How many passes there are, so many at least if nobody knows."""
    known = None if passes is None or passes.powers else passes.constant
    return least if known is None else int(known)


def _loops(event: Event) -> Loops:
    """Those that it happens in again and again: not one that ends in the pass that it happens in."""
    return tuple(loop for loop, _ in event.passes[: len(event.passes) - event.leaves])
