"""Backward passes that keep their graph, or go through that of an earlier pass of their loop."""

from collections.abc import Iterable

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.graphs import Start
from ta_lint.dryrun.stubs.torch.modules import DISTANT
from ta_lint.dryrun.values import Object, Place
from ta_lint.events.event import Event
from ta_lint.events.graph import Carried, Retained

_OFF = "switched off"
"""What happens where a switch of the program turns off a backward pass of the same function, which may use the graph too."""


def retained_of(events: list[Event]) -> list[Retained]:
    """The backward passes of loops that step an optimizer, line by line, if they keep the graph."""
    uses = [one for one in events if one.action in (Action.BACKWARD, "differentiate", _OFF)]
    trained = _trained(events)
    found: dict[Place, list[Event]] = {}
    for event in uses:
        if (
            event.action == Action.BACKWARD
            and event.passes
            and not event.by_library
            and event.detail["starts"]
        ):
            found.setdefault(event.place, []).append(event)
    return [
        Retained(
            position(place),
            code(place),
            position(ours[-1].passes[-1][0]),
            _is_used_again(ours, uses, trained),
        )
        for place, ours in found.items()
        if all(one.detail["retains"] for one in ours) and any(_steps(one, events) for one in ours)
    ]


def _trained(events: list[Event]) -> set[int]:
    """The leaves, by id, that optimizers hold."""
    optimizers = {one.subject for one in events if one.action in ("optimizer", Action.STEP)}
    return {id(leaf) for one in optimizers if isinstance(one, Object) for leaf in held_by(one).parameters}


def _steps(event: Event, events: list[Event]) -> bool:
    """Whether an optimizer steps in the same pass."""
    return any(
        one.action == Action.STEP and one.passes[: len(event.passes)] == event.passes for one in events
    )


def _is_used_again(ours: list[Event], uses: list[Event], trained: set[int]) -> bool:
    """Whether another use shares a start, or one that is not known may; or what was made before the pass leads to what is trained."""
    starts = frozenset().union(*(one.detail["starts"] for one in ours))
    places = {one.place for one in ours}
    others = [one for one in uses if one.place not in places and one.action != _OFF]
    loops = {one.passes for one in ours}
    calls = {(one.functions, one.passes) for one in ours}
    return (
        any(not starts.isdisjoint(one.detail["starts"]) for one in others)
        or any(one.detail["open"] and one.passes in loops for one in others)
        or any((one.functions, one.passes) in calls for one in uses if one.action == _OFF)
        or any(
            one.passes[: len(event.passes)] != event.passes and _leads_to(one, trained)
            for event in ours
            for one in event.detail["starts"]
        )
    )


def _leads_to(start: Start, trained: set[int]) -> bool:
    return not start.leaves or any(id(leaf) in trained for leaf in start.leaves)


def carried_of(events: list[Event]) -> list[Carried]:
    """The calls, line by line, that get a state of an earlier pass, where a backward pass has already gone through its graph and does so
    again. Of a model that keeps its state itself, it is the layer.
    """
    found: dict[Carried, None] = {}
    for number, event in enumerate(events):
        if event.action == Action.BACKWARD and (old := set(_of_earlier_passes(event))):
            inside: list[Event] = []
            is_given = False
            for call in reversed(events[:number]):
                if call.passes[: len(event.passes)] != event.passes:
                    break
                if call.action == Action.FORWARD and _gets(call, old) and _goes_on(call, event):
                    if call.detail["within"]:
                        inside.append(call)
                    else:
                        is_given = True
                        found.setdefault(Carried(position(call.place), position(event.place)))
            if not is_given and inside:  # a model that keeps the state itself: its first layer that gets it
                found.setdefault(Carried(position(inside[-1].place), position(event.place)))
    return list(found)


def _gets(call: Event, old: set[Start]) -> bool:
    """Whether a module gets what an earlier pass has made of these graphs."""
    return any(
        not old.isdisjoint(starts) and all(one.passes != call.passes for one in starts)
        for starts in call.detail["given"]
    )


def _goes_on(call: Event, backward: Event) -> bool:
    """Whether the graph of what a module gets goes on in what it gives. One out of sight may drop or detach it: if it did not, a backward
    pass that keeps no graph would fail.
    """
    return call.subject.cls is not DISTANT or backward.detail["retains"] is True


def _of_earlier_passes(event: Event) -> Iterable[Start]:
    """What a backward pass goes through that one has gone through in an earlier pass of the same loop."""
    return (
        one
        for one in event.detail["used"]
        if any(loop == mine and number < now for loop, number in one.passes for mine, now in event.passes)
    )
