"""The parts of models that are frozen and run in training mode."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.torch.modules import (
    ALL_PARAMETERS,
    HAS_BATCH_NORMS,
    below,
    children,
    held,
    is_module,
)
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.values import FALSE, TRUE, Class, Known, Object, Value
from ta_lint.events.event import Event
from ta_lint.events.frozen import FrozenPart
from ta_lint.events.place import Place

CHANGES = frozenset({"unfreeze", "hand over", "load", "save", "write"})
"""What may let a part learn, or change it all the same, while it is used. A saved state shares its numbers with the part."""


def frozen_parts_of(events: list[Event]) -> list[FrozenPart]:
    """The frozen parts with batch norms that the program calls, by the line that puts them into training mode."""
    found: dict[Place, FrozenPart] = {}
    for part in _parts(events):
        norms = list(_norms(part))
        if norms and not _changes(part, events):
            _look(part, norms, events, found)
    return list(found.values())


def _parts(events: list[Event]) -> list[Object]:
    """The outermost modules of the models that are called whose parameters are certainly frozen."""
    models = {id(each.subject): each.subject for each in _calls(events) if not each.detail["inside"]}
    frozen = {id(one): one for model in models.values() for one in _frozen(model)}
    inside = {id(each) for one in frozen.values() for _, each, _ in below(one) if each is not one}
    return [one for one in frozen.values() if id(one) not in inside]


def _calls(events: list[Event]) -> Iterator[Event]:
    return (event for event in events if event.action == Action.FORWARD)


def _frozen(module: Object) -> Iterator[Object]:
    """Of a module that learns, those in it that do not. A network whose layers are out of sight is a part of its own, whatever it has got."""
    group = held(module)
    own = [one for one in module.fields.values() if isinstance(one, Tensor) and one.cls is PARAMETER]
    whole = module.fields.get(ALL_PARAMETERS)
    if (
        group.complete
        and group.parameters
        and all(one.facts.requires is False for _, one in group.parameters)
    ):
        yield module
        return
    if isinstance(whole, Tensor) and len(own) == 1 and whole.facts.requires is False:
        yield module
    for _, child, sure in children(module):
        if sure:
            yield from _frozen(child)


def _norms(part: Object) -> Iterator[Object]:
    """The batch norms of a part that keep statistics; the part itself where it stands for those that it has out of sight."""
    norm = find("torch.nn.modules.batchnorm._BatchNorm")
    for _, layer, sure in below(part):
        sizes = layer.fields.get("sizes", {})
        is_norm = isinstance(norm, Class) and layer.cls.is_a(norm)
        keeps = is_norm and sizes.get("track_running_stats") is True and sizes.get("momentum") not in (0, ...)
        if sure and (keeps or HAS_BATCH_NORMS in layer.fields):
            yield layer


def _changes(part: Object, events: list[Event]) -> bool:
    """Whether something may change the part, or the mode of layers in it that are out of sight, once it is in use."""
    own = {id(one) for _, one, _ in below(part)} | {id(one) for _, one in held(part).parameters}
    if any(one.facts.requires is not False for _, one in held(part).parameters):
        own.discard(id(part))  # it is the model: whoever gets it trains or saves it
    distant = any(HAS_BATCH_NORMS in one.fields for _, one, _ in below(part))
    used = False
    for event in events:
        subject = event.subject
        if event.action == Action.FORWARD:
            used = used or id(subject) in own
        elif event.action == "visit" and distant:
            around = {id(one) for _, one, _ in below(subject)} if _is_model(subject) else own
            if not own.isdisjoint(around):
                return True
        elif event.action in CHANGES and isinstance(subject, Object):
            touched = subject.fields.get("of", subject) if isinstance(subject, Tensor) else subject
            before_use = event.action in ("load", "write") and not used
            if id(touched) in own and not before_use:
                return True
            if (
                event.action == "unfreeze"
                and _is_model(subject)
                and not own.isdisjoint(id(one) for _, one in held(subject).parameters)
            ):
                return True
    return False


def _is_model(value: Value | None) -> bool:
    return value is not None and is_module(value)


def _look(part: Object, norms: list[Object], events: list[Event], found: dict[Place, FrozenPart]) -> None:
    """What the calls of the part do, once it is frozen."""
    parameters = {id(one) for _, one in held(part).parameters}
    layers = {id(one) for one in norms}
    frozen = max(
        (index for index, event in enumerate(events) if _freezes(event, part, parameters)), default=-1
    )
    switched: Event | None = None
    outer: Event | None = None
    for index, event in enumerate(events):
        if event.action == Action.TRAIN and _has_line(event) and _has(event.subject, part):
            switched = event
        if event.action != Action.FORWARD:
            continue
        outer = event if not event.detail["inside"] else outer
        if index < frozen or id(event.subject) not in layers or outer is None or event.some_pass:
            continue
        place = position((switched or outer).place)
        one = found.setdefault(place, FrozenPart(place, _class(part), position(outer.place)))
        one.looks += event.times
        moves = event.detail["training"] == TRUE
        one.norms = max(one.norms, len(norms) if moves else 0)
        one.still += event.times if event.detail["training"] == FALSE else 0


def _has_line(event: Event) -> bool:
    """Whether a line of the program does it, and not the framework that runs a class of it."""
    return event.place.node is not getattr(event.entry, "node", None)


def _freezes(event: Event, part: Object, parameters: set[int]) -> bool:
    if event.action != "freeze":
        return False
    return id(event.subject) in parameters or _has(event.subject, part)


def _has(model: Value | None, part: Object) -> bool:
    return isinstance(model, Object) and is_module(model) and any(one is part for _, one, _ in below(model))


def _class(part: Object) -> str:
    network = part.fields.get(HAS_BATCH_NORMS)
    return str(network.value) if isinstance(network, Known) else part.cls.name.rpartition(".")[2]
