"""The learning rate schedulers that a program builds, and how often each steps."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.values import NONE, Object, Place, Sequence, Value, options
from ta_lint.events.event import Event
from ta_lint.events.loop import Scheduled, Stepped
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
    steps, turns = _steps(events, Action.STEP), _steps(events, Action.SCHEDULE)
    parts = {part for event in events if event.action == "scheduler" for part in event.detail["parts"]}
    lost = set(_lost(events))
    is_unseen = any(event.action == "unseen step" for event in events)
    found = []
    for one in _built(events):
        scheduled, others = one.scheduled, turns.keys() - set(one.objects)
        scheduled.steps = sum(turns[each] for each in one.objects)
        scheduled.optimizer.steps = sum(steps[each] for each in one.optimizers)
        scheduled.is_part = not parts.isdisjoint(one.objects)
        scheduled.is_replaced = any(not one.optimizers.isdisjoint(_optimizers_of(each)) for each in others)
        if scheduled.steps or not (is_unseen or not lost.isdisjoint(one.objects)):
            found.append(scheduled)
    return found


def _built(events: list[Event]) -> list[_Built]:
    """The schedulers by the place that builds them. A class of the program itself may set rates in any of its methods."""
    found: dict[Place, _Built] = {}
    for event in events:
        scheduler = event.subject
        if event.action == "scheduler" and isinstance(scheduler, Object) and not _is_own(scheduler):
            kind = scheduler.cls.name.rpartition(".")[2]
            new = _Built(Scheduled(position(event.place), kind, _stepped(_optimizers_of(scheduler)[0])))
            found.setdefault(event.place, new).objects.append(scheduler)
    return list(found.values())


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


def _steps(events: list[Event], action: Action) -> Counter[Value]:
    """How often each optimizer or scheduler steps."""
    found: Counter[Value] = Counter()
    for event in events:
        if event.action == action and event.subject is not None:
            found.update(dict.fromkeys(options(event.subject), event.times))
    return found


def _lost(events: list[Event]) -> Iterator[Value]:
    """What code out of sight has: it got it, or calls the function that returns it."""
    for event in events:
        if event.action == "handed over" and event.subject is not None:
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
