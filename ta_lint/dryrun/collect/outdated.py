"""The lines that change the parameters of a model which an optimizer holds already."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.memberships import scope_of
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.gradients import groups_of, held_by
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor, is_parameter, written_to
from ta_lint.dryrun.values import Object, Place, Sequence, Table, Value, each_in, options
from ta_lint.events.event import Event
from ta_lint.events.outdated import Outdated

Ids = frozenset[int]
"""Parameters, by id."""
_NONE: Ids = frozenset()
CHANGES = frozenset({"add", "renew", "replace", "unfreeze"})
"""What gives a model parameters that learn."""


@dataclass(frozen=True, slots=True)
class _Optimizer:
    """An optimizer, once it is built."""

    built: Event
    certain: Ids
    """What it holds at the end,"""
    perhaps: Ids
    """what it may hold,"""
    split: Ids
    """and what is in one of several groups, which differ in other things."""
    complete: bool
    frozen: Ids
    """What was frozen when it was built."""

    def is_before(self, change: Event) -> bool:
        """Whether it is there where something changes, on every path to that."""
        here = self.built.path or {}
        fits = self.built.certain or (bool(here) and here.items() <= (change.path or {}).items())
        return fits and scope_of(self.built) in (None, scope_of(change))


@dataclass(slots=True)
class _Change:
    """A change that is looked at, and what has become of it so far."""

    event: Event
    new: Ids
    """The parameters that no optimizer holds."""
    old: Ids
    """Those whose place they take; none of them where they are added."""
    what: str
    optimizers: dict[Object, _Optimizer]
    """Those that it concerns."""
    reached: set[Object] = field(default_factory=set)
    """Those of them beside whose parameters, or instead of them, gradients have reached the new ones."""


def outdated_of(events: list[Event]) -> list[Outdated]:
    """The changes that no optimizer sees, by their lines."""
    optimizers = _optimizers(events)
    kept: Ids = frozenset().union(*(one.certain | one.perhaps for one in optimizers.values()))
    kept |= {id(written_to(event.subject)) for event in events if event.action == "write"}
    changes: list[_Change] = []
    there: dict[Object, _Optimizer] = {}
    given: frozenset[Value] = frozenset()
    both_ways = _places(events, "freeze") & _places(events, "unfreeze")
    found: dict[Place, Outdated] = {}
    for event in events:
        if event.subject in optimizers and event.action == "optimizer":
            there[event.subject] = optimizers[event.subject]
        given = _given(event, given)
        if there and event.action in CHANGES:
            here = {one: known for one, known in there.items() if one not in given}
            changes += _change(event, here, kept, frozenset().union(*(one.new for one in changes)))
        elif event.action == Action.BACKWARD:
            _reach(event, changes)
        elif event.action == "prepare":  # a library may give it the parameters that the model has now
            for one in changes:
                one.optimizers = {
                    each: known
                    for each, known in one.optimizers.items()
                    if each not in options(event.subject)
                }
        for one in changes if event.action in (Action.STEP, Action.UNKNOWN) else ():
            optimizer = next((each for each in one.optimizers if _uses(event, each, one, events)), None)
            if optimizer is not None:
                built, place = one.optimizers[optimizer].built, _place(one.event, both_ways)
                found.setdefault(
                    place, Outdated(position(place), one.what, position(built.place), position(event.place))
                )
    return list(found.values())


def _given(event: Event, given: frozenset[Value]) -> frozenset[Value]:
    """The optimizers that code out of sight has just got, which may have brought them up to date with the model that it gives."""
    if event.action == Action.UNKNOWN:
        return given if event.detail.get("alone") or event.subject is None else given | {event.subject}
    return given if event.action in ("hand over", "replace") else frozenset()


def _optimizers(events: list[Event]) -> dict[Object, _Optimizer]:
    found: dict[Object, _Optimizer] = {}
    frozen: Ids = _NONE
    for event in events:
        if event.action in ("freeze", "unfreeze"):
            switched = _parameters(event.subject)
            frozen = frozen | switched if event.action == "freeze" else frozen - switched
        elif event.action == "optimizer" and isinstance(event.subject, Object):
            group = held_by(event.subject)
            certain = frozenset(map(id, group.parameters))
            groups = [_rest(one) for one in groups_of(event.subject, further=True)]
            perhaps = frozenset().union(*groups)
            split = _split(event.subject, groups)
            found[event.subject] = _Optimizer(event, certain, perhaps, split, group.complete, frozen)
    return found


def _rest(group: Table) -> Ids:
    """The parameters that one group may hold."""
    given = group.fields.get("params")
    rest = given.rest if isinstance(given, Sequence) else None
    return frozenset(
        id(one) for one in each_in((rest,) if rest is not None else ()) if isinstance(one, Tensor)
    )


def _split(optimizer: Object, groups: list[Ids]) -> Ids:
    """What each of several groups may hold, of which one has another weight decay: the program sorts all parameters then."""
    decays = {one.fields.get("weight_decay") for one in groups_of(optimizer)}
    return frozenset.intersection(*groups) if len(groups) > 1 and len(decays) > 1 else _NONE


def _places(events: list[Event], action: str) -> set[Place]:
    return {event.place for event in events if event.action == action}


def _parameters(*values: Value | None) -> Ids:
    """The parameters that these are, have or may be."""
    found: set[int] = set()
    for value in values:
        for one in options(value) if isinstance(value, Value) else ():
            if is_parameter(one):
                found.add(id(one))
            elif isinstance(one, Object) and is_module(one):
                found.update(id(each) for _, each in held(one).parameters)
    return frozenset(found)


def _change(event: Event, there: dict[Object, _Optimizer], kept: Ids, changed: Ids) -> Iterator[_Change]:
    """What an event changes, if some of these optimizers are concerned."""
    before = {one: known for one, known in there.items() if known.is_before(event)}
    old, new, what = _NONE, _NONE, ""
    if not before:
        return
    if event.action == "replace":
        old, new = _parameters(event.detail["old"]), _parameters(event.detail["new"])
        before = {one: known for one, known in before.items() if old & (known.certain | known.perhaps)}
        is_call = isinstance(event.place.node, ast.Call)
        goes_on = {id(one) for one in _learning(event.detail["new"])} & old
        what = (
            "" if goes_on else f"{'the model' if is_call else f'`{code(event.place)}`'} gets new parameters"
        )
    elif event.action == "add":
        new = _parameters(*event.detail["new"])
        what = "this adds parameters"
    elif event.action == "renew" and event.certain:
        old = _parameters(*event.detail["parameters"]) - changed
        before = {one: known for one, known in before.items() if old <= known.certain | known.split}
        if before:
            yield _Change(event, _NONE, old, f"the model gets {event.detail['what']}", before)
    elif event.action == "unfreeze":
        new = _parameters(event.subject)
        before = {one: known for one, known in before.items() if known.complete and new & known.frozen}
        new &= frozenset().union(*(known.frozen for known in before.values()))
        what = "this lets parameters learn"
    new -= kept
    if what and new and before:
        yield _Change(event, new, old, what, before)


def _learning(value: Value) -> Iterator[Tensor]:
    for one in options(value):
        if isinstance(one, Object) and is_module(one):
            yield from (each for _, each in held(one).parameters if each.facts.requires is not False)


def _reach(event: Event, changes: list[_Change]) -> None:
    """A backward pass reaches new parameters."""
    certain = frozenset(map(id, event.detail["roots"]))
    roots = certain | frozenset(map(id, event.detail["perhaps"]))
    for one in changes:
        for optimizer, known in one.optimizers.items():
            beside = bool(one.old) or not certain.isdisjoint(known.certain)
            if beside and not roots.isdisjoint(one.new or one.old):
                one.reached.add(optimizer)


def _uses(event: Event, optimizer: Object, change: _Change, events: list[Event]) -> bool:
    """Whether an optimizer trains a changed model: it steps, or code out of sight gets both to work with them."""
    if event.action == Action.STEP:
        return optimizer in change.reached and optimizer in options(event.subject)
    if event.action != Action.UNKNOWN or event.subject is not optimizer or not event.detail.get("alone"):
        return False
    parts = change.new or change.old
    return any(
        other.action == "hand over"
        and other.place == event.place
        and not parts.isdisjoint(_parameters(other.subject))
        for other in events
    )


def _place(change: Event, both_ways: set[Place]) -> Place:
    """The line that changes something: of a function that freezes or unfreezes as its caller says, the call; of one parameter after the
    other, their loop.
    """
    place: Place = change.place
    if change.action == "unfreeze":
        loop: Place | None = change.passes[-1][0] if change.passes else None
        if place in both_ways and change.detail["calls"]:
            place = change.detail["calls"][-1]
        elif (
            loop is not None
            and isinstance(loop.node, ast.For)
            and _names(loop.node.target) & _names(place.node)
        ):
            place = loop
    return place


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
