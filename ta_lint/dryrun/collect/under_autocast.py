"""The backward passes that run under autocast."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.machine.modes import Chooser
from ta_lint.events.event import Event
from ta_lint.events.graph import UnderAutocast


def under_autocast_of(events: list[Event]) -> list[UnderAutocast]:
    """Each line of the program that begins one, with the autocast around it."""
    found: dict[UnderAutocast, None] = {}
    for event in events:
        chooser = event.detail["chooser"] if event.action == Action.BACKWARD else None
        if isinstance(chooser, Chooser) and chooser.made is not None and not event.in_library:
            made = chooser.made
            found[UnderAutocast(position(event.place), code(event.place), position(made), code(made))] = None
    return list(found)
