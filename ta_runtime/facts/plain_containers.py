"""The lists, tuples and dicts on the user's modules, and whether anything else holds what is in them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor, nn

from ta_lint.events.containers import PlainContainer
from ta_runtime.probes.sources import of_attribute

_KINDS = {list: "list", tuple: "tuple", dict: "dict"}
_OWN = frozenset(vars(nn.Module()))
"""What every module has: its parameters, hooks and the like."""


def plain_containers_of(
    called: Sequence[nn.Module], model: nn.Module, models: Iterable[nn.Module], trained: Iterable[Tensor]
) -> Iterator[PlainContainer]:
    """Those on the modules that a forward pass of a model has called. `models` may have what is in them, and optimizers what is trained."""
    known = {id(module) for module in model.modules()}
    holders = {id(module): module for module in called}
    if all(key in known for key in holders) and not _hold_parameters(holders.values()):
        return
    registered = {id(part) for one in models for part in [*one.modules(), *one.parameters()]}
    registered.update(map(id, trained))
    for holder in holders.values():
        for attribute, kind, elements in _containers(holder):
            # a list of one is the usual way to keep a module from its owner on purpose
            hides = kind != "dict" and len(elements) == 1
            place = of_attribute(type(holder), attribute) if not hides else None
            if place is not None:
                held = sum(_is_held(one, registered) for one in elements)
                lost = [
                    one
                    for one in elements
                    if id(one) not in registered and _trainable(one, registered, holders.keys())
                ]
                element = type(lost[0]).__name__ if lost else ""
                yield PlainContainer(place, attribute, kind, len(elements), held, len(lost), element)


def _hold_parameters(holders: Iterable[nn.Module]) -> bool:
    """Whether a module has parameters in a container; modules in one show in the calls."""
    return any(
        isinstance(element, Tensor)
        for holder in holders
        for _, _, elements in _containers(holder)
        for element in elements
    )


def _containers(holder: nn.Module) -> Iterator[tuple[str, str, list[nn.Module | nn.Parameter]]]:
    """The attributes of a module that are plain containers: name, kind, and the elements that could be registered."""
    if type(holder).__module__.startswith("torch."):
        return
    for attribute, value in vars(holder).items():
        if (
            isinstance(value, (list, tuple, dict))
            and attribute not in _OWN
            and (elements := _elements(value))
        ):
            kind = next(name for base, name in _KINDS.items() if isinstance(value, base))
            yield attribute, kind, elements


def _elements(container: Any) -> list[nn.Module | nn.Parameter]:
    """Its modules and parameters, including those in nested lists."""
    values = list(container.values() if isinstance(container, dict) else container)
    inner = [part for value in values if isinstance(value, (list, tuple)) for part in value]
    return [value for value in values + inner if isinstance(value, (nn.Module, nn.Parameter))]


def _is_held(element: nn.Module | nn.Parameter, registered: set[int]) -> bool:
    parts = [element] if isinstance(element, nn.Parameter) else [element, *element.parameters()]
    return any(id(part) in registered for part in parts)


def _trainable(element: nn.Module | nn.Parameter, registered: set[int], called: Collection[int]) -> bool:
    """Whether a gradient flows through an element in this run, but no optimizer has it."""
    if isinstance(element, nn.Parameter):
        return element.requires_grad and element.grad is not None
    parameters = list(element.parameters())
    runs = any(id(module) in called for module in element.modules())
    return (
        runs
        and any(tensor.requires_grad for tensor in parameters)
        and not any(id(t) in registered for t in parameters)
    )
