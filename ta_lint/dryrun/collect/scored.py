"""The losses whose input is certainly the output of one activation, and the scores that a ReLU has clipped."""

from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.bundles import BUNDLE
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Place
from ta_lint.events.event import Event
from ta_lint.events.scored import ClippedScores, Scored


def scored_of(events: list[Event]) -> list[Scored]:
    """The calls of losses, each with the activation of its input if that is the same whenever it runs. A model that has run often is not looked into
    again, so what it gives to the loss after that says nothing. What another entry has left behind is a guess.
    """
    found: dict[Place, set[Scored | None]] = {}
    seen = set()
    for event in events:
        if event.action != "loss" or event.by_library:
            continue
        output, given = event.detail["output"], event.detail["input"]
        if output is None and event.place in seen and isinstance(given, Tensor) and given.cls is BUNDLE:
            continue
        if output is None or output.entry is not event.entry:
            found.setdefault(event.place, set()).add(None)
            continue
        seen.add(event.place)
        one = Scored(position(event.place), event.detail["by"], output.name, position(output.place))
        found.setdefault(event.place, set()).add(one)
    return [one for several in found.values() for one in several if len(several) == 1 and one is not None]


def clipped_scores_of(events: list[Event]) -> list[ClippedScores]:
    """Each place that gets such scores once."""
    found = {
        event.place: ClippedScores(position(event.place), position(event.detail["at"]))
        for event in events
        if event.action == "clipped scores"
    }
    return list(found.values())
