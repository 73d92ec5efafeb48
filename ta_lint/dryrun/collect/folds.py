"""Models that go on from fold to fold of a cross-validation, which scores them on rows that they have trained on."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.evaluated import evaluated_of, of_this_pass, only_asks
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import held
from ta_lint.dryrun.values import Object, Place
from ta_lint.events.event import Event
from ta_lint.events.overlaps import Refolded

_ANEW = frozenset({Action.LOAD, "hand over", "initialise", "pretrained", "replace", "reset", "write"})
"""What may give a model other weights than its training does."""


def refolded_of(events: list[Event]) -> list[Refolded]:
    """None where anything may bring the weights back that a model had before a fold."""
    folds = _folds(events)
    evaluated = evaluated_of(events) if folds else set()
    found: dict[Place, Refolded] = {}
    for place, (first, second, *_) in folds.items():
        if any(event.action in _ANEW for event in (*first, *second)):
            continue
        again, before = _trained(first) & _trained(second), _scored(first, evaluated)
        for model in _scored(second, evaluated):
            goes_on = model in before and any(id(one) in again for _, one in held(model).parameters)
            if goes_on and model.made is not None:
                found[model.made] = Refolded(position(model.made), position(place))
    return [*found.values()]


def _folds(events: list[Event]) -> dict[Place, list[list[Event]]]:
    """What happens in each fold, where there are several."""
    found: dict[Place, list[list[Event]]] = {}
    begun: dict[Place, Event] = {}
    for event in events:
        if event.action == "fold":
            begun[event.place] = event
            found.setdefault(event.place, []).append([])
        for place, one in begun.items():
            depth = len(one.passes)
            if len(event.passes) > depth and event.passes[:depth] == one.passes:
                found[place][-1].append(event)
    return {place: several for place, several in found.items() if len(several) > 1}


def _trained(fold: list[Event]) -> set[int]:
    """The parameters, by id, that optimizers certainly change."""
    steps = (event.subject for event in fold if event.action == Action.STEP and event.certain)
    return {id(one) for each in steps if isinstance(each, Object) for one in held_by(each).parameters}


def _scored(fold: list[Event], evaluated: set[Object]) -> list[Object]:
    """The models that are asked about held-out rows of the fold."""
    own = {event.subject for event in fold if event.action == "loader"} & evaluated
    in_hand: dict[Stream, Event] = {}
    found: list[Object] = []
    for event in fold:
        if event.action == Action.BATCH:
            in_hand[event.detail["iterator"]] = event
        elif event.action == "epoch is over":
            in_hand.pop(event.detail["iterator"], None)
        elif event.action == Action.FORWARD and not event.detail["within"] and only_asks(event):
            found += [event.subject] if of_this_pass(in_hand, event) & own else []
    return found
