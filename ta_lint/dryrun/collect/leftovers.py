"""Accumulations that start anew with each pass over a loader, and leave the batches at its end without a step."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import Cycle, Length, number_of
from ta_lint.dryrun.stubs.torch.data import LOADER
from ta_lint.dryrun.values import Object, Place, Value
from ta_lint.events.event import Event
from ta_lint.events.leftovers import Leftover


def leftovers_of(events: list[Event]) -> list[Leftover]:
    """Those of the program; none where the last batches of an epoch get a step, or are a full one."""
    over: dict[Place, Value | None] = {}
    lengths: dict[Value, int | None] = {}
    guards: dict[tuple[Place, object], Event] = {}
    found: dict[Place, Leftover] = {}
    for event in events:
        if event.action == "bound":
            bound = event.detail["bound"]
            is_whole = isinstance(bound, Length) and bound.measured is event.subject
            over[event.detail["loop"]] = event.subject if is_whole else None
        elif event.action == Action.EPOCH:
            lengths[event.subject] = event.detail["length"]
        elif event.action == "cycle" and event.detail["is_only"]:
            guards[event.passes[-1][0], event.detail["waits"]] = event
    for guard, step in _guarded(events, guards):
        loop, cycle = step.passes[-1][0], guard.detail["cycle"]
        loader = over.get(loop)
        if (
            not isinstance(loader, Object)
            or not loader.cls.is_a(LOADER)
            or not _is_left(events, step, loop, cycle)
        ):
            continue
        count, length = number_of(cycle.count), lengths.get(loader)
        left = length % count if count and length is not None else None
        if left != 0:
            related = (
                (position(loop), "counts from the start in each epoch"),
                (position(step.place), "the step that they miss"),
            )
            found.setdefault(guard.place, Leftover(position(guard.place), count, left, related))
    return [*found.values()]


def _guarded(events: list[Event], guards: dict[tuple[Place, object], Event]) -> Iterator[tuple[Event, Event]]:
    """The steps that wait for a count which starts anew with each run of their loop, each with the condition that they wait for."""
    for step in events:
        if step.action == Action.STEP and step.passes and not step.by_library:
            guard = guards.get((step.passes[-1][0], step.waits))
            if guard is not None and guard.detail["cycle"].restarts:
                yield guard, step


def _is_left(events: list[Event], step: Event, loop: Place, cycle: Cycle) -> bool:
    """Whether each pass of the loop adds to the gradients that this step uses, and nothing else uses or clears what is left at its end."""
    computes = False
    for event in events:
        is_inside = loop in (one for one, _ in event.passes)
        if event.action == "way out" and is_inside and cycle.count in event.detail["of"]:
            return False
        concerns = not event.detail.get("before", {}).keys().isdisjoint(step.detail["before"])
        is_first = is_inside and event.passes[-1][1] == 0  # which may be known to step
        if not concerns or is_first or event.entry is not step.entry:
            continue
        waits = is_inside and event.waits is not None
        if event.action in (Action.STEP, Action.UNKNOWN) and not waits:
            return False
        if event.action == Action.CLEAR and is_inside and event.in_each_pass:
            return False
        if event.action == Action.BACKWARD and waits:
            return False
        computes = computes or (event.action == Action.BACKWARD and is_inside)
    return computes and number_of(cycle.count) != 1
