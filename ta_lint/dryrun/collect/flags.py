"""The lines that set attributes of modules and optimizers that torch does not read."""

import ast
from collections.abc import Callable, Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.modules import is_module
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.stubs.torch.without_effect import SOME_MODULE
from ta_lint.dryrun.values import BY_NAME, Class, Object, Place, Unknown, Value
from ta_lint.events.event import Event
from ta_lint.events.flag import Flag, RateSet


def flags_of(events: list[Event]) -> list[Flag]:
    """The lines that set `requires_grad` of modules. What is known by its name alone is one if it is called."""
    called = {event.subject for event in events if event.action == Action.FORWARD}

    def is_one(subject: Value) -> bool:
        if isinstance(subject, Unknown):
            return subject.why == SOME_MODULE or "__call__" in subject.parts  # no tensor is called
        by_name = isinstance(subject, Object) and BY_NAME in subject.fields
        return is_module(subject) and (not by_name or subject in called)

    return [Flag(position(place)) for place in _set(events, frozenset({"requires_grad"}), is_one)]


def rates_of(events: list[Event]) -> list[RateSet]:
    """The lines that set the learning rate of an optimizer of torch."""

    def is_one(subject: Value) -> bool:
        if not isinstance(subject, Object) or BY_NAME in subject.fields:
            return False
        return subject.cls.is_a(OPTIMIZER) and subject.cls.node is None

    places = _set(events, frozenset({"lr", "learning_rate"}), is_one)
    return [RateSet(position(place), code(place)) for place in places]


def _set(events: list[Event], names: frozenset[str], is_one: Callable[[Value], bool]) -> Iterator[Place]:
    """The lines that set one of these attributes, of such objects alone, and of none whose attribute the program reads. A rate that it only
    shows is what misleads.
    """
    shown = _shown(events) if "lr" in names else set()
    read = {
        (_owner(event.subject), event.detail["name"])
        for event in events
        if event.action == "attribute read" and id(event.place.node) not in shown
    }
    found: dict[Place, bool] = {}
    for event in events:
        if event.action == "attribute" and event.detail["name"] in names:
            is_guess = isinstance(event.subject, Unknown) and event.functions == (event.entry,)
            if is_guess and not is_one(event.subject):
                continue  # a guess: others call this function
            owner, name = _owner(event.subject), event.detail["name"]
            is_read = (owner, name) in read or (isinstance(owner, Class) and _reads(owner, name))
            fits = is_one(event.subject) and not is_read
            found[event.place] = found.get(event.place, True) and fits
    return (place for place, fits in found.items() if fits)


def _reads(cls: Class, name: str) -> bool:
    """Whether a method of a class, which perhaps no code here calls, reads an attribute of this name."""
    parts = ast.walk(cls.node or ast.Pass())
    return any(
        isinstance(one, ast.Attribute) and one.attr == name and isinstance(one.ctx, ast.Load) for one in parts
    )


def _owner(subject: Value) -> Value:
    """The class of an object whose code may read the attribute, the object itself if the class is one of a library."""
    return subject.cls if isinstance(subject, Object) and subject.cls.node is not None else subject


def _shown(events: list[Event]) -> set[int]:
    """The expressions, by id, that the program prints or logs."""
    return {id(part) for event in events if event.action == "shown" for part in ast.walk(event.place.node)}
