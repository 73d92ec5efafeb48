"""The optimizers that are to step weights in half precision."""

from collections.abc import Iterator

from ta_lint.dryrun.collect.decay import OF_TORCH
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import groups_of
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor, tensors_in
from ta_lint.dryrun.values import Known, Object, Sequence, Table, Value, options
from ta_lint.events.event import Event
from ta_lint.events.half_updates import HalfUpdate

HALF = frozenset({"bfloat16", "float16"})


def half_updates_of(events: list[Event]) -> list[HalfUpdate]:
    """Those of torch whose learning rate is known, with weights that are in half precision when it is built, and stay so."""
    widened = {id(parameter) for event in events if _may_widen(event) for parameter in _held(event.subject)}
    found = {}
    for event in events:
        own = event.subject
        if event.action != "optimizer" or not own.cls.name.startswith(OF_TORCH) or own.made is None:
            continue
        before = event.detail["dtypes"]
        rates = [
            rate
            for group in groups_of(own)
            if (rate := _rate(group)) > 0
            and any(
                _is_half(one, before) and widened.isdisjoint(map(id, options(one)))
                for one in _parameters(group)
            )
        ]
        if rates:
            found[own] = HalfUpdate(position(own.made), max(rates))
    return [*found.values()]


def _may_widen(event: Event) -> bool:
    """Whether a library gets a model or an optimizer that may keep weights in float32 for it, as those do that shard them."""
    by = event.detail.get("by")
    name = str(by.value) if isinstance(by, Known) else ""
    of_library = "." in name and " " not in name
    return event.action == "prepare" or (event.action in ("hand over", "unknown") and of_library)


def _held(value: Value) -> Iterator[Tensor]:
    """The parameters of models or optimizers that a value may be."""
    for one in options(value):
        if isinstance(one, Object) and is_module(one):
            yield from (parameter for _, parameter in held(one).parameters)
        elif isinstance(one, Object):
            yield from tensors_in(part for group in groups_of(one) for part in _parameters(group))


def _parameters(group: Table) -> tuple[Value, ...]:
    parameters = group.fields.get("params")
    return parameters.every if isinstance(parameters, Sequence) else ()


def _rate(group: Table) -> float:
    """The learning rate of a group, 0 if it is not known."""
    given = group.fields.get("lr")
    return float(given.value) if isinstance(given, Known) and isinstance(given.value, int | float) else 0.0


def _is_half(parameter: Value, before: dict[Tensor, str | None]) -> bool:
    return all(
        isinstance(one, Tensor) and {one.facts.dtype, before.get(one)} <= HALF and one.facts.requires is True
        for one in options(parameter)
    )
