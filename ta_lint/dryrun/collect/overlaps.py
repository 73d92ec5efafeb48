"""Loaders that models are scored on, of which a loader that trains has all samples."""

import ast

from ta_lint.core.protocol import Action
from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.collect.evaluated import evaluated_of, of_this_pass
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch import data, outputs
from ta_lint.dryrun.stubs.torch.samplers import has_own_sampler
from ta_lint.dryrun.values import NONE, Object, Place, Value
from ta_lint.events.event import Event
from ta_lint.events.overlaps import Overlap


def overlaps_of(events: list[Event]) -> list[Overlap]:
    """None where another loader holds samples out, or may: the score on the training data is then one of two. Nor where the data is called
    training data.
    """
    trained, scored = set[Object](), dict[Object, set[Object]]()
    evaluated, in_hand = evaluated_of(events), dict[Stream, Event]()
    for event in events:
        if event.action == Action.BATCH:
            in_hand[event.detail["iterator"]] = event
        elif event.action == "epoch is over":
            in_hand.pop(event.detail["iterator"], None)
        elif event.action == Action.STEP:
            trained |= of_this_pass(in_hand, event)
        elif event.action == outputs.USED and event.detail["how"] == outputs.COMPARED:
            for one in of_this_pass(in_hand, event) & evaluated:
                scored.setdefault(one, set()).update(trained)
    found = [
        (one, next(filter(None, (_shared(one, other) for other in before)), None))
        for one, before in scored.items()
    ]
    if any(other is None for _, other in found) or evaluated - set(scored):
        return []
    return [_overlap(one, other) for one, other in found if other is not None and not _is_meant(one)]


def _shared(evaluated: Object, trained: Object) -> Object | None:
    """The loader that trains, if it has all samples of the one that evaluates."""
    plain = not any(has_own_sampler(one) or data.is_stream(one) for one in (evaluated, trained))
    whole = trained.fields.get("dataset", NONE)
    return (
        trained
        if plain and any(one is whole for one in _wholes(evaluated.fields.get("dataset", NONE)))
        else None
    )


def _wholes(dataset: Value) -> list[Object]:
    """The data set, if it is known, and those that it is a part of."""
    found: list[Object] = []
    while type(dataset) is Object and dataset not in found:
        found.append(dataset)
        dataset = dataset.fields.get("dataset", NONE) if dataset.cls.is_a(data.PART) else NONE
    return found


def _overlap(evaluated: Object, trained: Object) -> Overlap:
    assert evaluated.made is not None
    assert trained.made is not None
    given = _given(evaluated.made)
    return Overlap(position(evaluated.made), position(trained.made), code(given))


def _is_meant(loader: Object) -> bool:
    """Whether the name of the data says that it trains. What nobody sees made is not known."""
    return loader.made is None or is_meant("training", code(_given(loader.made)))


def _given(made: Place) -> Place:
    """What a loader is given as its data."""
    call = made.node
    if not isinstance(call, ast.Call):
        return made
    named = (one.value for one in call.keywords if one.arg == "dataset")
    return Place(made.file, next(named, call.args[0] if call.args else call))
