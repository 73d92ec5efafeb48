"""Plain containers on modules, and whether anything else holds what is in them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.collect.switches import optimizers_in
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.layer_modes import depends_on_mode
from ta_lint.dryrun.stubs.torch.modules import CRITERION, DISTANT, below, held, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor, is_parameter
from ta_lint.dryrun.values import (
    BY_NAME,
    NONE,
    TRUE,
    Class,
    Function,
    Object,
    Place,
    Sequence,
    Table,
    Value,
    options,
)
from ta_lint.events.containers import PlainContainer
from ta_lint.events.event import Event

LOOKED_AFTER = frozenset({Action.TRAIN, Action.EVAL, "mode", "move", "load", "save", "visit", "clear"})
"""What happens to a part of a model by itself only where code knows that no module has it."""
MOST_DEEP = 2
"""Containers in containers that are looked into."""


@dataclass(slots=True)
class _Holders:
    """What the program does with modules and parameters, each by its id."""

    holders: dict[int, set[int]] = field(default_factory=dict)
    """The modules that have one as a part,"""
    looked_after: dict[int, int] = field(default_factory=dict)
    """the number of the last event in which code looks after one,"""
    given_away: set[int] = field(default_factory=set)
    """those that code out of sight has,"""
    returned: set[int] = field(default_factory=set)
    """those that a function gives which nobody here calls,"""
    asked: dict[int, list[Event]] = field(default_factory=dict)
    """what asks for the parameters of a module,"""
    optimized: dict[int, list[Event]] = field(default_factory=dict)
    """and what gives a parameter to an optimizer."""


def plain_containers_of(events: list[Event]) -> list[PlainContainer]:
    """The lines that first set an attribute of a module to a container, if nothing else holds what is in it, whichever object of the class it is."""
    first: dict[tuple[int, str], tuple[int, Event]] = {}
    for number, event in enumerate(events):
        if event.action == "container":
            first.setdefault((id(event.subject), event.detail["name"]), (number, event))
    filled = [(number, event) for number, event in first.values() if _containers(event)]
    if not filled:
        return []
    known = _known(events)
    broken = {event.entry for event in events if event.action == "broken off"}
    found: dict[Place, PlainContainer | None] = {}
    for number, event in filled:
        lost = None if event.entry in broken else _lost(event, number, known)
        if lost is None or event.place not in found:
            found[event.place] = lost
    return [one for one in found.values() if one is not None]


def _known(events: list[Event]) -> _Holders:
    found = _Holders()
    built = {event.subject: event for event in events if event.action == "optimizer"}
    for optimizer in optimizers_in(events):
        for one in held_by(optimizer).parameters:
            if optimizer in built:
                found.optimized.setdefault(id(one), []).append(built[optimizer])
    seen: set[int] = set()
    for number, event in enumerate(events):
        if is_module(event.subject):
            for holder, part in _parts(event.subject, seen):
                found.holders.setdefault(id(part), set()).add(id(holder))
        if event.action == "parameters":
            found.asked.setdefault(id(event.subject), []).append(event)
        elif event.action in LOOKED_AFTER and not _is_in_forward(event):
            found.looked_after.update({id(one): number for one in _inside(event.subject)})
        elif event.action == "hand over":
            found.given_away.update(map(id, _inside(event.subject)))
        elif event.action == "returned":
            found.returned.update(map(id, _inside(event.subject)))
        elif event.action == "add group":
            found.given_away.update(map(id, _inside(event.detail["group"])))
    return found


def _is_in_forward(event: Event) -> bool:
    """Whether it happens in each call of a module: what is moved there is still in no optimizer and no checkpoint."""
    return event.action == "move" and any(one.name == "forward" for one in event.functions)


def _parts(root: Object, seen: set[int]) -> Iterator[tuple[Object, Object]]:
    """The parts of a module and of those below it, each with the module that has it."""
    pending = [root]
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            for value in list(one.fields.values()):
                for part in _inside(value, 0) if isinstance(value, Value) else ():
                    yield one, part
                    if is_module(part):
                        pending.append(part)


def _inside(value: Value | None, depth: int = MOST_DEEP) -> list[Object]:
    """The modules and parameters that a value is, or has in it."""
    found: list[Object] = []
    for one in options(value) if value is not None else ():
        if isinstance(one, (Sequence, Table)):
            found += [each for part in one.every for each in _inside(part, depth - 1)] if depth else []
        elif isinstance(one, Object) and (is_module(one) or is_parameter(one)):
            found.append(one)
    return found


def _containers(event: Event) -> list[Sequence | Table]:
    """What the attribute is in the end, if that certainly is a plain container, None aside, with a part of a model in it."""
    value = event.subject.fields.get(event.detail["name"])
    every = [one for one in options(value) if one != NONE] if value is not None else []
    plain = [one for one in every if isinstance(one, (Sequence, Table))]
    return plain if len(plain) == len(every) and any(map(_inside, plain)) else []


def _lost(event: Event, number: int, known: _Holders) -> PlainContainer | None:
    """The container, if nothing else holds anything of it. A list of one that is indexed hides what is in it on purpose."""
    owner, name, containers = event.subject, event.detail["name"], _containers(event)
    inside = [one for container in containers for one in _inside(container)]
    is_open = owner.fields.get("incomplete") == TRUE or isinstance(owner.cls.find("parameters"), Function)
    hides = all(isinstance(one, Sequence) and len(one.every) == 1 for one in containers)
    if is_open or (hides and _is_indexed(owner.cls, name)):
        return None
    if any(_is_held(one, owner, number, known) for one in inside):
        return None
    lost = [one for one in inside if _has_state(one)]
    if not lost or lost[0].made is None:
        return None
    return PlainContainer(
        position(event.place),
        name,
        "dict" if isinstance(containers[0], Table) else containers[0].cls.name.rpartition(".")[2],
        len(inside),
        held=0,
        lost=len(lost),
        element=_name(lost[0]),
        made=position(lost[0].made),
        trains=any(id(one) in known.asked for one in inside),
    )


def _is_indexed(cls: Class, name: str) -> bool:
    """Whether a method of a class takes one out of an attribute of this name."""
    parts = (part for each in cls.mro if each.node is not None for part in ast.walk(each.node))
    values = (part.value for part in parts if isinstance(part, ast.Subscript))
    return any(isinstance(one, ast.Attribute) and one.attr == name for one in values)


def _is_held(one: Object, owner: Object, number: int, known: _Holders) -> bool:
    """Whether something else than the container holds a part of a model, or code knows of it from there on."""
    modules = [each for _, each, _ in below(one)] if is_module(one) else []
    parameters = [each for _, each in held(one).parameters] if is_module(one) else [one]
    own = {id(each) for each in modules}
    return any(
        not own.issuperset(known.holders.get(id(each), ()))
        or known.looked_after.get(id(each), -1) > number
        or id(each) in known.given_away
        or (id(each) in known.returned and (each is one or is_module(each)))
        or any(_are_of(owner, known.optimized.get(id(each), ())))
        or not all(_are_of(owner, known.asked.get(id(each), ())))
        for each in (*modules, *parameters)
    )


def _are_of(owner: Object, events: Iterable[Event]) -> list[bool]:
    """Of each event, whether a method of an object's class does it."""
    return [any(function.owner in owner.cls.mro for function in event.functions) for event in events]


def _has_state(one: Object) -> bool:
    """Whether there is something to train or a mode to set, of what this program makes."""
    if BY_NAME in one.fields or one.cls in (DISTANT, CRITERION):
        return False
    parameters = [one] if is_parameter(one) else [each for _, each in held(one).parameters]
    if parameters:
        return any(isinstance(each, Tensor) and each.facts.requires is not False for each in parameters)
    return any(depends_on_mode(layer) for _, layer, _ in below(one))


def _name(one: Object) -> str:
    """How messages name a kind of layer."""
    name = one.cls.name
    return name.replace("torch.nn.", "nn.") if name.startswith("torch.nn.") else name.rpartition(".")[2]
