"""The lines that seed a global generator, and the steps after each."""

from typing import Any

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.data import DATASET
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.values import Function, Known, Place
from ta_lint.events.event import Event
from ta_lint.events.seeds import Seeding

STARTS = 3
"""Steps that stand for all later ones: as many as a run asks for."""
CALLED = {"forward": MODULE, "__getitem__": DATASET}
"""The methods that torch calls, again and again in a training."""


def seedings_of(events: list[Event]) -> list[Seeding]:
    """The lines that certainly seed a global generator where they are reached, in each pass of the loop around them."""
    found: dict[tuple[str, Place], Seeding] = {}
    waiting: dict[str, tuple[Seeding, Event]] = {}
    built: dict[Any, Event] = {}
    for event in events:
        for generator, (seeding, seed) in [*waiting.items()]:
            if event.entry is not seed.entry:
                _end(seeding, seed)
                del waiting[generator]
        if event.action == "seed" and event.detail["generator"]:
            place = event.detail["given_at"]
            new = Seeding(event.detail["generator"], position(place))
            seeding = found.setdefault((new.generator, place), new)
            seeding.calls += event.times
            seeding.values.add(event.detail["value"])
            if event.in_each_pass or (event.certain and not event.passes):
                waiting[event.detail["generator"]] = seeding, event
        elif event.action == "optimizer":
            built[event.subject] = event
        elif event.action == "restore":
            waiting.pop(event.detail["generator"], None)
        elif event.action == Action.STEP:
            for seeding, seed in waiting.values():
                _start(seeding, event, is_older=_is_older(built.get(event.subject), seed))
            waiting.clear()
    for seeding, seed in waiting.values():
        _end(seeding, seed)
    return [*found.values()]


def _is_older(built: Event | None, seed: Event) -> bool:
    """Whether an optimizer was certainly built before the loop that seeds, in a later pass."""
    loops = set() if built is None else {loop for loop, _ in built.passes}
    later = any(number for _, number in seed.passes)
    return built is not None and later and loops.isdisjoint(loop for loop, _ in seed.passes)


def _start(seeding: Seeding, step: Event, *, is_older: bool) -> None:
    """A step follows a seeding. An optimizer that is older, or has stepped before, is not built again in each pass, and steps in later ones."""
    again = is_older or any(optimizer is step.subject for optimizer, _, _ in seeding.starts)
    count = min(step.times, STARTS) if again else 1
    seeding.starts += [(step.subject, "seeded", "drawn from")] * count


def _end(seeding: Seeding, seed: Event) -> None:
    """An entry ends without a step: one that torch calls is called in each step of a training."""
    entry = seed.entry
    kind = CALLED.get(entry.name) if isinstance(entry, Function) else None
    called = kind is not None and entry.owner is not None and entry.owner.is_a(kind)
    if called and not seed.passes and isinstance(seed.detail["value"], Known):
        seeding.starts += [(entry, "seeded", "drawn from")] * STARTS
