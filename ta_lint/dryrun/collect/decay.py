"""The groups of the optimizers that a program builds, with their weight decay."""

from dataclasses import dataclass

from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.torch.modules import ALL_PARAMETERS, below, is_module
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.values import TRUE, Class, Known, Object, Sequence, Table
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
    built = [
        event.subject
        for event in events
        if event.action == "optimizer"
        and isinstance(event.subject, Object)
        and event.subject.cls.name.startswith(OF_TORCH)
    ]
    if not any(group.decay for one in built for group in _groups(one, {})):
        return []
    holders = _holders(events)
    return [
        BuiltOptimizer(position(one.made), tuple(_groups(one, holders)))
        for one in dict.fromkeys(built)
        if one.made is not None
    ]


def _groups(optimizer: Object, holders: dict[int, list[_Holder]]) -> list[DecayGroup]:
    groups = optimizer.fields.get("param_groups")
    if not isinstance(groups, Sequence):
        return []
    kind = optimizer.cls.name.removeprefix(OF_TORCH)
    return [_group(one, kind, holders) for one in groups.items if isinstance(one, Table)]


def _group(group: Table, kind: str, holders: dict[int, list[_Holder]]) -> DecayGroup:
    parameters = group.fields.get("params")
    items = parameters.items if isinstance(parameters, Sequence) else ()
    tensors = [one for one in items if isinstance(one, Tensor)]
    return DecayGroup(
        _decay(group, kind),
        "AdamW" in kind or group.fields.get("decoupled_weight_decay") == TRUE,
        tuple(_held(one, holders.get(id(one), [])) for one in tensors),
        isinstance(parameters, Sequence) and parameters.rest is None and len(tensors) == len(items),
    )


def _decay(group: Table, kind: str) -> float | None:
    given = group.fields.get("weight_decay")
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
                if isinstance(value, Tensor) and value.cls is PARAMETER:
                    path = f"{prefix}.{name}" if prefix else str(name)
                    holder = _Holder(path, layer, name == ALL_PARAMETERS)
                    found.setdefault(id(value), {}).setdefault(id(layer), holder)
    return {parameter: list(layers.values()) for parameter, layers in found.items()}
