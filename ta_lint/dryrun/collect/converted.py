"""Tensors that become arrays while they require a gradient."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.events.event import Event
from ta_lint.events.graph import Converted


def converted_of(events: list[Event]) -> list[Converted]:
    """By place, what each conversion there shows. Whoever calls a function that nobody here calls may switch recording off, unless a backward pass goes
    through the same graph.
    """
    passes = [one.detail["starts"] for one in events if one.action == Action.BACKWARD]
    found: dict[Converted, None] = {}
    for event in events:
        if event.action == "array" and event.detail["needs"]:
            starts = event.detail["starts"]
            if event.entry is None or any(not starts.isdisjoint(one) for one in passes):
                found.setdefault(Converted(position(event.place), code(event.place)))
    return list(found)
