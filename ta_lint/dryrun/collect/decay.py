"""The groups of the optimizers that a program builds, with their weight decay."""

from dataclasses import dataclass

from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.torch.gradients import groups_of
from ta_lint.dryrun.stubs.torch.modules import ALL_PARAMETERS, below, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor, is_parameter
from ta_lint.dryrun.values import (
    FALSE,
    Class,
    Known,
    Object,
    Option,
    Sequence,
    Setting,
    Table,
    Value,
    options,
)
from ta_lint.events.decay import BuiltOptimizer, DecayGroup, HeldParameter, Role, role_of
from ta_lint.events.event import Event

OF_TORCH = "torch.optim."
DEFAULTS = {"AdamW": 0.01}
"""The weight decay of the optimizers of torch that have one where nothing is said."""


@dataclass(frozen=True, slots=True)
class _Holder:
    """A layer that has a parameter, and the name of the parameter in the model."""

    name: str
    layer: Object
    stands_for_all: bool
    """Whether it is the one that stands for all parameters of a model whose layers are out of sight."""


def decays_of(events: list[Event]) -> list[BuiltOptimizer]:
    """The optimizers of torch that the program builds."""
    built = dict.fromkeys(
        event.subject
        for event in events
        if event.action == "optimizer"
        and isinstance(event.subject, Object)
        and event.subject.cls.name.startswith(OF_TORCH)
    )
    if all(group.decay == 0 for one in built for group in _groups(one, {})):
        return []
    holders = _holders(events)
    return [
        BuiltOptimizer(position(one.made), _kind(one), tuple(_groups(one, holders)))
        for one in built
        if one.made is not None
    ]


def _kind(optimizer: Object) -> str:
    return optimizer.cls.name.removeprefix(OF_TORCH)


def _groups(optimizer: Object, holders: dict[int, list[_Holder]]) -> list[DecayGroup]:
    return [_group(one, _kind(optimizer), holders) for one in groups_of(optimizer)]


def _group(group: Table, kind: str, holders: dict[int, list[_Holder]]) -> DecayGroup:
    parameters = group.fields.get("params")
    items = parameters.items if isinstance(parameters, Sequence) else ()
    each = [_one_of([_held(one, holders.get(id(one), [])) for one in _tensors(item)]) for item in items]
    found = [one for one in each if one is not None]
    return DecayGroup(
        _decay(group, kind),
        "AdamW" in kind or _is_decoupled(group),
        tuple(found),
        isinstance(parameters, Sequence) and parameters.rest is None and len(found) == len(items),
    )


def _tensors(item: Value) -> list[Tensor]:
    """The parameters that an item may be, none if it may be something else."""
    every = [one for one in options(item) if isinstance(one, Tensor)]
    return every if len(every) == len(options(item)) else []


def _one_of(every: list[HeldParameter]) -> HeldParameter | None:
    """What is certain of a parameter that is one of these: of two models, each may have it in a layer of the same kind."""
    alike = len({(one.role, one.trainable) for one in every}) == 1
    return every[0] if alike else None


def _is_decoupled(group: Table) -> bool | None:
    given = group.fields.get("decoupled_weight_decay", FALSE if group.rest is None else None)
    return bool(given.value) if isinstance(given, Known) else None


def _decay(group: Table, kind: str) -> float | None:
    given = group.fields.get("weight_decay")
    if isinstance(given, Setting) and not isinstance(given, Option):
        return None if given.value else 0.0
    if given is None:
        return DEFAULTS.get(kind, 0.0) if group.rest is None else None
    number = given.value if isinstance(given, Known) else None
    return float(number) if isinstance(number, int | float) else None


def _held(parameter: Tensor, holders: list[_Holder]) -> HeldParameter:
    trainable = parameter.facts.requires is True
    if not holders:
        return HeldParameter("", None, trainable)
    name, layer = holders[0].name, holders[0].layer
    if holders[0].stands_for_all:
        return HeldParameter(name, Role.NETWORK if _is_of_library(layer) else None, trainable)
    shape = parameter.facts.shape
    if shape is None:
        return HeldParameter(name, None, trainable)
    role = role_of(
        name,
        layer.cls.name.rpartition(".")[2],
        len(shape),
        is_embedding=all(_is_a(one.layer, "Embedding") for one in holders),
        is_linear=_is_a(layer, "Linear", "modules.conv._ConvNd"),
    )
    return HeldParameter(name, role, trainable)


def _is_of_library(model: Object) -> bool:
    """Whether a library has built a model, and its class is one of a library that is made for whole networks."""
    cls = model.cls
    is_described = cls.made is None or cls.made.file.endswith(STUB)
    return model.made is not None and is_described and not cls.name.startswith("torch.nn.")


def _is_a(layer: Object, *names: str) -> bool:
    classes = (find(f"torch.nn.{name}") for name in names)
    return any(isinstance(cls, Class) and layer.cls.is_a(cls) for cls in classes)


def _holders(events: list[Event]) -> dict[int, list[_Holder]]:
    """The layers that have a parameter, with its names in the largest model that has them."""
    found: dict[int, dict[int, _Holder]] = {}
    subjects = {id(event.subject): event.subject for event in events}.values()
    models = [[*below(one)] for one in subjects if isinstance(one, Object) and is_module(one)]
    for model in sorted(models, key=len, reverse=True):
        for prefix, layer, _ in model:
            for name, value in layer.fields.items():
                if is_parameter(value):
                    path = f"{prefix}.{name}" if prefix else str(name)
                    holder = _Holder(path, layer, name == ALL_PARAMETERS)
                    found.setdefault(id(value), {}).setdefault(id(layer), holder)
    return {parameter: list(layers.values()) for parameter, layers in found.items()}
