"""The learning rate schedulers that a program builds, how often each steps, and whether that comes before its optimizer."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.cadences import LoopCounts, note_cadence
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.values import NONE, Object, Place, Sequence, Value, options
from ta_lint.events.event import Event
from ta_lint.events.loop import Scheduled, SchedulerCalls, Stepped
from ta_lint.events.place import NOWHERE

MOST_OBJECTS = 200
"""Objects that are looked through for what an unknown caller gets."""


@dataclass(slots=True)
class _Built:
    """The schedulers that one place builds, such as one in each pass of a loop."""

    scheduled: Scheduled
    objects: list[Object] = field(default_factory=list)

    @property
    def optimizers(self) -> set[Value]:
        """What they are made for."""
        return {one for scheduler in self.objects for one in _optimizers_of(scheduler)}


def schedulers_of(events: list[Event]) -> list[Scheduled]:
    """The schedulers of libraries that the program builds, and how often each steps; none that code out of sight may step."""
    built = _building(events)
    steps, turns = _steps(events, Action.STEP), _steps(events, Action.SCHEDULE)
    turned = {one for event in turns for one in options(event.subject)}
    parts = {part for event in built.values() for part in event.detail["parts"]}
    lost = set(_lost(events))
    is_unseen = any(event.action == "unseen step" for event in events) or not turned <= built.keys()
    found = []
    for one in _by_place(built):
        scheduled, others = one.scheduled, turned - set(one.objects)
        scheduled.steps = sum(_count(turns, [each], built[each]) for each in one.objects)
        scheduled.optimizer.steps = max(
            _count(steps, _optimizers_of(each), built[each]) for each in one.objects
        )
        scheduled.is_part = not parts.isdisjoint(one.objects)
        scheduled.is_replaced = any(not one.optimizers.isdisjoint(_optimizers_of(each)) for each in others)
        if scheduled.steps or not (is_unseen or not lost.isdisjoint(one.objects)):
            found.append(scheduled)
    return found


def _building(events: list[Event]) -> dict[Object, Event]:
    """The schedulers that the program builds, each with the event that it is built by."""
    return {
        event.subject: event
        for event in events
        if event.action == "scheduler" and isinstance(event.subject, Object)
    }


def _by_place(built: dict[Object, Event]) -> list[_Built]:
    """Those of libraries, by the place that builds them. A class of the program itself may set rates in any of its methods."""
    found: dict[Place, _Built] = {}
    for scheduler, event in built.items():
        if not _is_own(scheduler):
            kind = scheduler.cls.name.rpartition(".")[2]
            new = _Built(Scheduled(position(event.place), kind, _stepped(_optimizers_of(scheduler)[0])))
            found.setdefault(event.place, new).objects.append(scheduler)
    return list(found.values())


def calls_of(events: list[Event]) -> list[SchedulerCalls]:
    """The calls of each scheduler of a library, by line.

    A scheduler that the program is given is of the optimizer that it was made for out of sight, else of the only one that steps.
    """
    built, steps = _building(events), _steps(events, Action.STEP)
    stepped = list(dict.fromkeys(one for event in steps for one in options(event.subject)))
    counts = LoopCounts.of(events)
    found = []
    for (scheduler, place), numbers in _called(events, built).items():
        made_for = [one for one in _optimizers_of(scheduler) if isinstance(one, Object)]
        optimizers = made_for or ([] if scheduler in built else stepped)
        own = [step for step in steps if not set(options(step.subject)).isdisjoint(optimizers)]
        if not own or any(step.in_library for step in own):  # a trainer steps the schedule too
            continue
        calls = [events[number] for number in numbers]
        where = position(built[scheduler].place) if scheduler in built else NOWHERE
        kind = scheduler.cls.name.rpartition(".")[2]
        one = SchedulerCalls(position(place), where, kind, None, counts_batches=False)
        one.times = _count(calls, [scheduler], built.get(scheduler))
        one.has_argument = any(call.detail["has_argument"] for call in calls)
        one.optimizer_steps = _count(steps, optimizers, built.get(scheduler))
        before = _before_first(events, numbers, optimizers[0]) if len(optimizers) == 1 else None
        one.before_first = None
        if before is not None:
            one.before_first, one.first = before[0], position(before[1].place)
        is_new = bool(made_for) or (before is not None and _is_new(calls[0], before[1]))
        one.begins = is_new and not _is_loaded(events[: numbers[0]], scheduler, *optimizers)
        note_cadence(one, calls, own, built.get(scheduler), counts)
        found.append(one)
    return found


def _called(events: list[Event], built: Container[Value]) -> dict[tuple[Object, Place], list[int]]:
    """The numbers of the events that step a scheduler at a place. One that is only named so and returns something is none of torch."""
    found: dict[tuple[Object, Place], list[int]] = {}
    for number, event in enumerate(events):
        one = event.subject
        if event.action != Action.SCHEDULE or event.in_library or not isinstance(one, Object) or _is_own(one):
            continue
        if one in built or not event.detail["is_used"]:
            found.setdefault((one, event.place), []).append(number)
    return found


def _is_new(call: Event, step: Event) -> bool:
    """Whether a scheduler that the program is given has not stepped before. A function that nobody here calls may go over the data
    for the second time; a single step that it makes comes after its scheduler's at the first time, too.
    """
    return step.entry is None or step.passes == call.passes


def _before_first(events: list[Event], calls: list[int], optimizer: Value) -> tuple[int, Event] | None:
    """How many calls of a scheduler come before the first step of its optimizer, and that step; None if nobody knows."""
    number = next((at for at, event in enumerate(events) if _is_step(event, optimizer)), None)
    computed = next((at for at, event in enumerate(events) if event.action == Action.BACKWARD), len(events))
    if number is None or any(
        _may_step(event, optimizer) for event in events[computed : min(number, calls[0])]
    ):
        return (
            None  # code out of sight that gets the optimizer before there are gradients makes something of it
        )
    call, step = events[calls[0]], events[number]
    if number < calls[0]:
        return 0, step
    if step.entry is not call.entry or not _both_happen(call, step):
        return None
    return sum(at < number for at in calls), step


def _is_step(event: Event, optimizer: Value) -> bool:
    return event.action == Action.STEP and event.subject is not None and optimizer in options(event.subject)


def _may_step(event: Event, optimizer: Value) -> bool:
    """Whether it may be a step of an optimizer that nobody sees."""
    return event.action == "unseen step" or (
        event.action == Action.UNKNOWN and optimizer in event.detail.get("before", ())
    )


def _both_happen(call: Event, step: Event) -> bool:
    """Whether one of two happens if the other does: both certainly, or under the same conditions of one function."""
    if call.certain or step.certain:
        return call.certain and step.certain
    return call.functions == step.functions and call.path is step.path


def _is_loaded(events: list[Event], *objects: Value) -> bool:
    """Whether one of these has certainly loaded the state of a checkpoint."""
    return any(event.action == Action.LOAD and event.certain and event.subject in objects for event in events)


def _optimizers_of(scheduler: Value) -> tuple[Value, ...]:
    """What a scheduler is made for; nothing is known of one that is not known itself."""
    if not isinstance(scheduler, Object):
        return ()
    return options(scheduler.fields.get("optimizer", NONE))


def _is_own(scheduler: Object) -> bool:
    made = scheduler.cls.made
    return made is not None and not made.file.endswith(STUB)


def _stepped(optimizer: Value) -> Stepped:
    """The optimizer of a scheduler, which may be one that the program is given."""
    if not isinstance(optimizer, Object):
        return Stepped(NOWHERE, "Optimizer")
    built = NOWHERE if optimizer.made is None else position(optimizer.made)
    return Stepped(built, optimizer.cls.name.rpartition(".")[2])


def _steps(events: list[Event], action: Action) -> list[Event]:
    """The steps of optimizers, or of schedulers."""
    return [event for event in events if event.action == action and event.subject is not None]


def _count(steps: list[Event], objects: Iterable[Value], built: Event | None) -> int:
    """How often one of these steps for one scheduler: a function that builds it does all else that it does for each one, too."""
    found = 0
    for step in steps:
        if not set(options(step.subject)).isdisjoint(objects):
            times = built.times if built is not None and step.entry is built.entry else 1
            found += max(1, step.times // times)
    return found


def _lost(events: list[Event]) -> Iterator[Value]:
    """What code out of sight has: it got it, or calls the function that returns it."""
    for event in events:
        if event.action == "hand over" and event.subject is not None:
            yield event.subject
        elif event.action == "returned" and event.subject is not None:
            yield from _reached(event.subject)


def _reached(value: Value) -> list[Object]:
    """The objects that can be reached from a value."""
    pending, found = [value], dict[int, Object]()
    while pending and len(found) < MOST_OBJECTS:
        for one in options(pending.pop()):
            if isinstance(one, Object) and id(one) not in found:
                found[id(one)] = one
                inside = one.every if isinstance(one, Sequence) else one.fields.values()
                pending += [each for each in inside if isinstance(each, Value)]
    return list(found.values())
