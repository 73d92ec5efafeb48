"""Which layers of the models that a program trains its optimizers hold."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import Group, held_by
from ta_lint.dryrun.stubs.torch.modules import DISTANT, below, children, contents, held, is_module
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor, written_to
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.stubs.torch.wrapping import WRAPPER
from ta_lint.dryrun.values import TRUE, Function, Object, Sequence, Value, options
from ta_lint.events.event import Event
from ta_lint.events.membership import Membership

V = TypeVar("V", bound=Value)

MOST_DEEP = 6
"""Attributes of attributes of an object that are looked into."""
FILLED = frozenset({"copy_", "data", "set_"})
"""What puts numbers into a parameter that come from elsewhere, as loading does; what draws them initialises."""


@dataclass(frozen=True, slots=True)
class _Optimizers:
    """The optimizers of a program."""

    groups: dict[Object, Group]
    """What each of them holds."""
    scopes: dict[Object, set[Value | None]]
    """The parts of the program that use it: see `scope_of`."""
    stepping: set[Object]
    """Those that step."""

    @property
    def holders(self) -> dict[int, Object]:
        """The optimizer that holds a parameter, by its id."""
        return {id(one): each for each, group in self.groups.items() for one in group.parameters}

    def around(self, scope: Value | None) -> list[Object]:
        """Those that a part of the program may know of."""
        return [one for one, scopes in self.scopes.items() if not scopes.isdisjoint({None, scope})]


@dataclass(slots=True)
class _Parameters:
    """What happens to parameters and modules, each by its id."""

    gradients: Counter[int] = field(default_factory=Counter)
    """How often a backward pass certainly reaches a parameter beside one that an optimizer steps."""
    beside: dict[int, Object] = field(default_factory=dict)
    """The optimizer of such another one."""
    written: set[int] = field(default_factory=set)
    """Those that the program writes to after a backward pass."""
    foreign: set[int] = field(default_factory=set)
    """Those that are copies, were loaded or filled with numbers before that, or are in the hands of code out of sight."""
    idle: set[int] = field(default_factory=set)
    """The modules that run, and never in training mode while autograd records."""
    successors: dict[int, Object] = field(default_factory=dict)
    """Those that came later than an optimizer, alone or in the place of others which it held: that optimizer."""


def memberships_of(events: list[Event]) -> list[Membership]:
    """The layers with parameters of each model that the program calls, outer ones first."""
    optimizers = _optimizers(events)
    seen = _seen(events, optimizers)
    if not seen.gradients:
        return []
    looks = [look for model in _models(events, seen) for look in _layers(model, seen, optimizers)]
    alone = [layer for layer, one in looks if one.is_outermost]
    inside = {id(one) for layer in alone for _, one, _ in below(layer) if one is not layer}
    return [replace(one, is_outermost=one.is_outermost and id(layer) not in inside) for layer, one in looks]


def _optimizers(events: list[Event]) -> _Optimizers:
    found = _Optimizers({}, {}, set())
    for event in events:
        for one in _objects(event.subject):
            if one.cls.is_a(OPTIMIZER):
                found.groups.setdefault(one, held_by(one))
                found.scopes.setdefault(one, set()).add(scope_of(event))
                if event.action == Action.STEP:
                    found.stepping.add(one)
    return found


def scope_of(event: Event) -> Value | None:
    """The function or class that is run on its own, None for the script: what happens in it knows of each other."""
    entry = event.entry
    return entry.owner or entry if isinstance(entry, Function) else entry


def _seen(events: list[Event], optimizers: _Optimizers) -> _Parameters:
    found = _Parameters(idle=_idle(events))
    broken = {scope_of(event) for event in events if event.action == "broken off"}
    built: dict[Object, Group] = {}
    for event in events:
        subject = event.subject
        if event.action == "optimizer" and isinstance(subject, Object):
            built[subject] = optimizers.groups[subject]
        elif event.action == Action.BACKWARD:
            scope = scope_of(event)
            around = optimizers.around(scope)
            if broken.isdisjoint({None, scope}) and all(optimizers.groups[one].complete for one in around):
                _reach(
                    found,
                    event,
                    {one: optimizers.groups[one] for one in around if one in optimizers.stepping},
                )
        elif event.action == "write" and isinstance(subject, Tensor):
            _write(found, id(written_to(subject)), event.detail["by"])
        elif event.action in ("copy", "hand over", "load") and isinstance(subject, Object):
            found.foreign.update(map(id, _inside(subject)))
        elif event.action == "replace":
            _replace(found, event, built)
        elif event.action == "add":
            _add(found, event, [one for one in built if one in optimizers.around(scope_of(event))])
    return found


def _idle(events: list[Event]) -> set[int]:
    called = [event for event in events if event.action == Action.FORWARD]
    trained = {
        id(event.subject)
        for event in called
        if event.detail["training"] == TRUE and event.detail["recording"] is True
    }
    return {id(event.subject) for event in called} - trained


def _reach(found: _Parameters, event: Event, stepping: dict[Object, Group]) -> None:
    """A backward pass, in a part of the program where these optimizers step."""
    roots = event.detail["roots"]
    for optimizer, group in stepping.items():
        if any(one in roots and one.cls is PARAMETER for one in group.parameters):
            for one in roots:
                found.gradients[id(one)] += event.times
                found.beside.setdefault(id(one), optimizer)
            return


def _replace(found: _Parameters, event: Event, built: dict[Object, Group]) -> None:
    """A part of a model takes the place of another one, when these optimizers are there."""
    old, new = (
        {id(each) for one in options(event.detail[part]) for each in _parameters(one)}
        for part in ("old", "new")
    )
    holders = {id(one): optimizer for optimizer, group in built.items() for one in group.parameters}
    holders |= found.successors
    if (optimizer := next((holders[one] for one in old if one in holders), None)) is not None:
        found.successors.update(dict.fromkeys(new, optimizer))


def _add(found: _Parameters, event: Event, built: list[Object]) -> None:
    """A model gets further parts, when these optimizers are there."""
    new = {id(each) for part in event.detail["new"] for one in options(part) for each in _parameters(one)}
    found.successors.update(dict.fromkeys(new, built[-1]) if built else {})


def _write(found: _Parameters, parameter: int, by: str) -> None:
    """The program itself writes to a parameter."""
    if found.gradients[parameter]:
        found.written.add(parameter)
    elif by in FILLED:
        found.foreign.add(parameter)


def _models(events: list[Event], seen: _Parameters) -> list[Object]:
    """The modules that are called, but for those inside of another: the model whose method calls them, if there is one."""
    found: dict[int, Object] = {}
    distrusted: set[int] = set()
    for event in events:
        if event.action == Action.FORWARD and not event.detail["within"]:
            callers = event.detail["callers"]
            model = unwrapped(next(filter(is_module, callers), event.subject))
            found.setdefault(id(model), model)
            for one in callers:
                if one.cls.out_of_sight and id(one) not in distrusted:
                    distrusted.add(id(one))  # who wrote its class may train what it has
                    seen.foreign.update(map(id, _inside(one)))
    return list(found.values())


def unwrapped(model: V) -> V | Object:
    """A model without what is wrapped around it for several devices."""
    inner = model.fields.get("module") if isinstance(model, Object) and model.cls.is_a(WRAPPER) else None
    return unwrapped(inner) if isinstance(inner, Object) else model


def _layers(model: Object, seen: _Parameters, optimizers: _Optimizers) -> Iterator[tuple[Object, Membership]]:
    """The layers of a model that have parameters."""
    holders = optimizers.holders
    own = [id(one) for _, one in held(model).parameters]
    of_model = [holders[one] for one in own if one in holders]
    pending = [] if id(model) in seen.idle else [("", model, True)]
    while pending:
        name, layer, may_be_outermost = pending.pop(0)
        parameters = _parameters(layer)
        if layer.made is None or not parameters:
            continue
        trainable = [id(one) for one in parameters if one.facts.requires is True]
        left = [one for one in trainable if one not in holders]
        alone = bool(left) and len(left) == len(trainable)
        got = [seen.gradients[one] for one in left if seen.gradients[one]]
        if not seen.written.isdisjoint(left):
            got = []
        stale = [seen.successors[one] for one in left if one in seen.successors]
        others = [*stale, *of_model, *(seen.beside[one] for one in left if one in seen.beside)]
        membership = Membership(
            position(layer.made),
            name,
            trainable=len(trainable),
            held=len(trainable) - len(left),
            is_outermost=alone and may_be_outermost,
            is_fresh=alone and _is_fresh(layer, seen),
            left_out=len(got),
            steps=min(got, default=0),
            optimizer=next((position(one.made) for one in others if one.made is not None), None),
            stale=len(stale),
        )
        yield layer, membership
        pending += [
            (f"{name}.{key}" if name else key, child, may_be_outermost and not alone)
            for key, child, sure in children(layer)
            if sure and id(child) not in seen.idle
        ]


def _is_fresh(layer: Object, seen: _Parameters) -> bool:
    """Whether the program has built all of it, of layers that are known, and has put nothing into it."""
    return not held(layer).open and not any(
        id(one) in seen.foreign or (is_module(one) and (one.cls.is_a(DISTANT) or one.cls.out_of_sight))
        for one in _inside(layer)
    )


def _parameters(value: Value) -> list[Tensor]:
    """The parameters that a part of a model certainly has."""
    if isinstance(value, Tensor):
        return [value] if value.cls is PARAMETER else []
    if not isinstance(value, Object) or not is_module(value):
        return []
    group = held(value)
    return [one for _, one in group.parameters if one not in group.perhaps]


def _inside(value: Object, seen: set[int] | None = None, depth: int = MOST_DEEP) -> Iterator[Object]:
    """The modules and parameters that an object is, or that its attributes hold."""
    seen = set() if seen is None else seen
    if id(value) in seen or not depth:
        return
    seen.add(id(value))
    if is_module(value):
        yield from contents(value)
    elif isinstance(value, Tensor):
        yield value
    else:
        parts = value.every if isinstance(value, Sequence) else tuple(value.fields.values())
        for part in parts:
            for one in _objects(part):
                yield from _inside(one, seen, depth - 1)


def _objects(value: object) -> list[Object]:
    """The objects that a value may be."""
    return [one for one in options(value) if isinstance(one, Object)] if isinstance(value, Value) else []
