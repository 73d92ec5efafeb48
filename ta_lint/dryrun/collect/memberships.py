"""Which layers of the models that a program trains its optimizers hold."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import Group, held_by
from ta_lint.dryrun.stubs.torch.modules import DISTANT, below, children, held, is_module
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import TRUE, Function, Object, Value, options
from ta_lint.events.event import Event
from ta_lint.events.membership import Membership

MOST_DEEP = 6
"""Attributes of attributes of an object that are looked into."""
FILLED = frozenset({"copy_", "data", "set_"})
"""What puts numbers into a parameter that come from elsewhere, as loading does; what draws them initialises."""


@dataclass(slots=True)
class _Training:
    """What happens to the parameters of a program, each by its id."""

    groups: dict[Object, Group] = field(default_factory=dict)
    """The optimizers with what they hold."""
    gradients: Counter[int] = field(default_factory=Counter)
    """How often a backward pass certainly reaches a parameter beside one that an optimizer steps."""
    beside: dict[int, Object] = field(default_factory=dict)
    """The optimizer of such another one."""
    written: set[int] = field(default_factory=set)
    """Those that the program writes to after a backward pass."""
    filled: set[int] = field(default_factory=set)
    """Those of which it does so before."""
    foreign: set[int] = field(default_factory=set)
    """The modules and parameters that are copies, have loaded something, or are in the hands of code out of sight."""
    idle: set[int] = field(default_factory=set)
    """The modules that never run in training mode while autograd records, as far as they run."""
    replaced: set[int] = field(default_factory=set)
    """The parameters of what a module had before it got something else in its place."""

    @property
    def holders(self) -> dict[int, Object]:
        """The optimizer that holds a parameter."""
        return {id(one): each for each, group in self.groups.items() for one in group.parameters}


def memberships_of(events: list[Event]) -> list[Membership]:
    """The layers with parameters of each model that the program calls, outer ones first."""
    training = _training(events)
    if not training.gradients:
        return []
    holders = training.holders
    looks = [look for model in _models(events, training) for look in _layers(model, training, holders)]
    outermost = {id(layer): layer for layer, one in looks if one.is_outermost}
    inside = {id(one) for layer in outermost.values() for _, one, _ in below(layer) if one is not layer}
    return [
        replace(one, is_outermost=False) if one.is_outermost and id(layer) in inside else one
        for layer, one in looks
    ]


def _training(events: list[Event]) -> _Training:
    found = _Training()
    scopes: dict[Object, set[Value | None]] = {}
    stepping = set[Object]()
    broken = {_scope(event) for event in events if event.action == "break off"}
    found.idle = _idle(events)
    for event in events:
        for one in options(event.subject) if isinstance(event.subject, Value) else ():
            if isinstance(one, Object) and one.cls.is_a(OPTIMIZER):
                found.groups.setdefault(one, held_by(one))
                scopes.setdefault(one, set()).add(_scope(event))
                if event.action == Action.STEP:
                    stepping.add(one)
    for event in events:
        subject = event.subject
        if event.action == Action.BACKWARD:
            scope = _scope(event)
            around = [one for one in found.groups if not scopes[one].isdisjoint({None, scope})]
            if all(found.groups[one].complete for one in around) and broken.isdisjoint({None, scope}):
                _note(found, event, [one for one in around if one in stepping])
        elif event.action == "write" and isinstance(subject, Tensor):
            parameter = id(subject.fields.get("of", subject))
            if found.gradients[parameter]:
                found.written.add(parameter)
            elif event.detail["by"] in FILLED:
                found.filled.add(parameter)
        elif event.action in ("copy", "hand over", "load") and isinstance(subject, Object):
            found.foreign.update(map(id, _inside(subject)))
        elif event.action == "replace":
            for one in options(event.detail["old"]):
                found.replaced.update(map(id, _parameters(one)))
    return found


def _idle(events: list[Event]) -> set[int]:
    called = [event for event in events if event.action == Action.FORWARD]
    trained = {
        id(event.subject)
        for event in called
        if event.detail["training"] == TRUE and event.detail["recording"] is True
    }
    return {id(event.subject) for event in called} - trained


def _note(found: _Training, event: Event, stepping: list[Object]) -> None:
    """A backward pass, in a place of the program where these optimizers step."""
    roots = event.detail["roots"]
    reached = {id(one) for one in roots}
    beside = next(
        (
            optimizer
            for optimizer in stepping
            if any(id(one) in reached and one.cls is PARAMETER for one in found.groups[optimizer].parameters)
        ),
        None,
    )
    if beside is not None:
        for one in reached:
            found.gradients[one] += event.times
            found.beside.setdefault(one, beside)


def _scope(event: Event) -> Value | None:
    """The function or class that is run on its own, None for the script: what happens there knows of each other."""
    entry = event.entry
    return entry.owner or entry if isinstance(entry, Function) else entry  # type: ignore[no-any-return]


def _models(events: list[Event], training: _Training) -> list[Object]:
    """The modules that are called, but for those inside of another: the model whose method calls them, if there is one."""
    found: dict[int, Object] = {}
    for event in events:
        if event.action == Action.FORWARD and not event.detail["inside"]:
            callers = event.detail["callers"]
            model = next(filter(is_module, callers), event.subject)
            found.setdefault(id(model), model)
            if any(one.cls.out_of_sight for one in callers):  # who wrote its class may train it
                training.foreign.update(map(id, _inside(model)))
    return list(found.values())


def _layers(
    model: Object, training: _Training, holders: dict[int, Object]
) -> Iterator[tuple[Object, Membership]]:
    """The layers of a model that have parameters."""
    own = [one for _, one in held(model).parameters]
    stale = {
        id(one): holder
        for holder, group in training.groups.items()
        for one in group.parameters
        if id(one) in training.replaced and not training.gradients[id(one)]
    }
    stale = {one: holder for one, holder in stale.items() if one not in set(map(id, own))}
    beside = [*stale.values(), *(holders[id(one)] for one in own if id(one) in holders)]
    pending = [("", model, True)] if id(model) not in training.idle else []
    while pending:
        name, layer, may_be_outermost = pending.pop(0)
        parameters = _parameters(layer)
        if layer.made is None or not parameters:
            continue
        trainable = [one for one in parameters if one.facts.requires is True]
        left = [one for one in trainable if id(one) not in holders]
        alone = bool(left) and len(left) == len(trainable)
        got = [training.gradients[id(one)] for one in left if training.gradients[id(one)]]
        others = [*beside, *(training.beside[id(one)] for one in trainable if id(one) in training.beside)]
        is_written = any(id(one) in training.written for one in left)
        yield (
            layer,
            Membership(
                position(layer.made),
                name,
                trainable=len(trainable),
                held=len(trainable) - len(left),
                is_outermost=alone and may_be_outermost,
                is_fresh=alone and _is_fresh(layer, training),
                left_out=0 if is_written else len(got),
                steps=0 if is_written else min(got, default=0),
                optimizer=next((position(one.made) for one in others if one.made is not None), None),
                stale=len(stale),
            ),
        )
        pending += [
            (f"{name}.{key}" if name else key, child, may_be_outermost and not alone)
            for key, child, sure in children(layer)
            if sure and id(child) not in training.idle
        ]


def _is_fresh(layer: Object, training: _Training) -> bool:
    """Whether the program has built all of it, of layers that are known, and has put nothing into it."""
    return not held(layer).open and not any(
        id(one) in training.foreign
        or id(one) in training.filled
        or (is_module(one) and (one.cls.is_a(DISTANT) or one.cls.out_of_sight))
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
    """An object, and the modules and parameters that it and its attributes hold."""
    seen = set() if seen is None else seen
    if id(value) in seen or not depth:
        return
    seen.add(id(value))
    if is_module(value):
        yield from (one for _, one, _ in below(value))
        yield from (one for _, one in held(value).parameters)
    elif isinstance(value, Tensor):
        yield value
    else:
        for attribute in list(value.fields.values()):
            for one in _objects(attribute):
                yield from _inside(one, seen, depth - 1)


def _objects(value: object) -> Iterable[Object]:
    """The objects that an attribute may be."""
    return [one for one in options(value) if isinstance(one, Object)] if isinstance(value, Value) else ()
