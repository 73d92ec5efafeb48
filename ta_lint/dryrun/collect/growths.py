"""The lines that keep the graphs of more and more passes alive."""

import ast

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.values import Place
from ta_lint.events.event import Event
from ta_lint.events.growth import Growth


def growths_of(events: list[Event]) -> list[Growth]:
    """What grows in some loop, by the place that adds to it."""
    found: dict[Place, list[Event]] = {}
    for event in events:
        if event.action == "growth":
            found.setdefault(event.detail["at"], []).append(event)
    return [_growth(place, grown, events) for place, grown in found.items()]


def _growth(place: Place, grown: list[Event], events: list[Event]) -> Growth:
    starts = frozenset().union(*(one.detail["starts"] for one in grown))
    backwards = {
        position(one.place): None
        for one in events
        if one.action == Action.BACKWARD and not starts.isdisjoint(one.detail["starts"])
    }
    return Growth(
        position(place),
        code(place),
        tuple(backwards),
        any(one.detail["freed"] for one in grown),
        not any(one.in_layer for one in starts)
        and not any(one.detail["of_outputs"] for one in grown)
        and any(one.detail["stepped"] or _is_of_calls(one) for one in grown),
        _is_renewed(grown, events),
        next((position(one.passes[-1][0]) for one in starts if one.passes), None),
    )


def _is_of_calls(grown: Event) -> bool:
    """Whether it grows from call to call of a function that nobody calls."""
    return len(grown.passes) == 1 and isinstance(grown.passes[0][0].node, ast.FunctionDef)


def _is_renewed(grown: list[Event], events: list[Event]) -> bool:
    """Whether it grows in none of the passes of a loop around. A loop that makes the optimizer too repeats the training."""
    growing = {one.passes[-1][0] for one in grown}
    around = {loop for one in grown for loop, _ in one.passes} - growing
    repeating = {loop for one in events if one.action == "optimizer" for loop, _ in one.passes}
    return bool(around - repeating)
