"""The parts of models that are frozen and run in training mode."""

from collections.abc import Iterator
from dataclasses import dataclass

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.torch.modules import (
    ALL_PARAMETERS,
    HAS_BATCH_NORMS,
    below,
    children,
    contents,
    held,
    is_module,
)
from ta_lint.dryrun.stubs.torch.tensors import written_to
from ta_lint.dryrun.values import FALSE, TRUE, Class, Known, Object, Value
from ta_lint.events.event import Event
from ta_lint.events.frozen import FrozenPart
from ta_lint.events.place import Place

CHANGES = frozenset({"unfreeze", "hand over", "load", "save", "write"})
"""What may let a part learn, or change it in another way, while it is used. A saved state shares its numbers with the part."""
BEFORE = frozenset({"load", "write"})
"""What of this says nothing before the part is used."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A frozen part of a model, and what is in it, by id."""

    module: Object
    norms: frozenset[int]
    """Its batch norms that keep statistics; itself where it stands for those that it has out of sight."""
    parameters: frozenset[int]
    """Those that are frozen."""
    layers: frozenset[int]
    """The modules that it is made of, but for those that learn, as a new head of it does."""
    is_distant: bool
    """Whether layers of it are out of sight."""

    def has(self, value: Value | None) -> bool:
        """Whether something is in the part."""
        return id(value) in self.parameters or id(value) in self.layers

    def is_made_of(self, value: Value) -> bool:
        """Whether layers of it are in a module."""
        return isinstance(value, Object) and any(
            one is self.module or id(one) in self.layers for _, one, _ in below(value)
        )

    def is_in(self, value: Value | None) -> bool:
        """Whether something is a module with a part of it, or with all of it."""
        return isinstance(value, Object) and is_module(value) and any(map(self.has, contents(value)))


def frozen_parts_of(events: list[Event]) -> list[FrozenPart]:
    """The frozen parts with batch norms that a training calls, by the line that puts them into training mode."""
    found: dict[Place, FrozenPart] = {}
    if any(event.action == Action.BACKWARD for event in events):
        for part in _parts(events):
            if part.norms and not _changes(part, events):
                _look(part, events, found)
    return list(found.values())


def _parts(events: list[Event]) -> list[_Part]:
    """The outermost frozen modules of the models that are called."""
    called = (event for event in events if event.action == Action.FORWARD and not event.detail["within"])
    models = {id(event.subject): event.subject for event in called}
    frozen = {id(one): one for model in models.values() for one in _frozen(model)}
    inside = {id(each) for one in frozen.values() for _, each, _ in below(one) if each is not one}
    return [_part(one) for one in frozen.values() if id(one) not in inside]


def _frozen(module: Object) -> Iterator[Object]:
    """A module whose parameters are certainly frozen, or else those in it. A network whose layers are out of sight is one if all of them
    are frozen, whatever it has got since.
    """
    group = held(module)
    whole = module.fields.get(ALL_PARAMETERS)
    stays = [one for _, one in group.parameters if one.facts.requires is False]
    if (group.complete and stays and len(stays) == len(group.parameters)) or whole in stays:
        yield module
        return
    for _, child, sure in children(module):
        if sure:
            yield from _frozen(child)


def _part(module: Object) -> _Part:
    layers = [one for _, one, sure in below(module) if sure]
    parameters = [one for _, one in held(module).parameters]
    return _Part(
        module,
        frozenset(id(one) for one in layers if _moves(one)),
        frozenset(id(one) for one in parameters if one.facts.requires is False),
        frozenset(id(one) for one in layers if not _learns(one)),
        any(HAS_BATCH_NORMS in one.fields for one in layers),
    )


def _moves(layer: Object) -> bool:
    """Whether a layer keeps statistics that it updates in training mode."""
    norm = find("torch.nn.modules.batchnorm._BatchNorm")
    if HAS_BATCH_NORMS in layer.fields or not (isinstance(norm, Class) and layer.cls.is_a(norm)):
        return HAS_BATCH_NORMS in layer.fields
    sizes = layer.fields.get("sizes", {})
    return sizes.get("track_running_stats") is True and sizes.get("momentum") not in (0, ...)


def _learns(module: Object) -> bool:
    return any(one.facts.requires is not False for _, one in held(module).parameters)


def _changes(part: _Part, events: list[Event]) -> bool:
    """Whether something may change the part, or the mode of layers in it that are out of sight, once it is in use."""
    modules = {id(one) for _, one, _ in below(part.module)}
    used = False
    for event in events:
        subject = event.subject
        used = used or (event.action == Action.FORWARD and id(subject) in modules)
        visits = event.action == "visit" and (subject is None or part.is_made_of(subject))
        inner = event.action == "eval" and id(subject) in modules and subject is not part.module
        if part.is_distant and (visits or inner):
            return True
        if event.action not in CHANGES or (event.action in BEFORE and not used):
            continue
        touched = written_to(subject)
        if part.has(touched) or (event.action == "unfreeze" and part.is_in(touched)):
            return True
    return False


def _look(part: _Part, events: list[Event], found: dict[Place, FrozenPart]) -> None:
    """What the calls of the part do, once it is frozen."""
    freezing = (
        number
        for number, event in enumerate(events)
        if event.action == "freeze" and (part.has(event.subject) or part.is_in(event.subject))
    )
    switched: Event | None = None
    outer: Event | None = None
    frozen = max(freezing, default=-1)
    for number, event in enumerate(events):
        if event.action == Action.TRAIN and _has_line(event) and part.is_in(event.subject):
            switched = event
        if event.action != Action.FORWARD:
            continue
        outer = event if not event.detail["within"] else outer
        if number < frozen or outer is None or id(event.subject) not in part.norms or event.some_pass:
            continue
        place = position((switched or outer).place)
        one = found.setdefault(place, FrozenPart(place, _kind(part.module), position(outer.place)))
        one.looks += event.times
        if event.detail["training"] == TRUE:
            one.norms = max(one.norms, len(part.norms))
        elif event.detail["training"] == FALSE:
            one.still += event.times


def _has_line(event: Event) -> bool:
    """Whether a line of the program does it, and not the framework that runs a class of it."""
    return event.place.node is not getattr(event.entry, "node", None)


def _kind(module: Object) -> str:
    """The name of its class, or of the function that gives such a network."""
    network = module.fields.get(HAS_BATCH_NORMS)
    return str(network.value) if isinstance(network, Known) else module.cls.name.rpartition(".")[2]
