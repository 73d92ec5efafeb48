"""TA410: layers in a list, dict or tuple on a module run, but nothing registers or trains them."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from ta_runtime.facts import Forward, Refutation, Said, Sight, Step, Suspicion
from ta_runtime.probes.sources import of_attribute

OF_STRUCTURE = True
_KINDS = {list: "list", tuple: "tuple", dict: "dict"}
_OWN = frozenset(vars(nn.Module()))
"""What every module has: its parameters, hooks and the like."""


def check_step(step: Step) -> Iterator[Said]:
    for forward in step.training_forwards:
        known = {id(module) for module in forward.model.module.modules()}
        if all(id(call.module) in known for call in forward.calls) and not _hold_parameters(forward):
            continue
        registered = {
            id(part)
            for model in forward.model.names.models
            for part in [*model.modules(), *model.parameters()]
        }
        registered |= {
            id(tensor) for gradients in step.gradients for tensor in gradients.optimizer.parameters
        }
        yield from _suspicions(forward, registered)


def _suspicions(forward: Forward, registered: set[int]) -> Iterator[Said]:
    called = {id(call.module) for call in forward.calls}
    for holder in {id(call.module): call.module for call in forward.calls}.values():
        for attribute, kind, elements in _containers(holder):
            lost = [
                element
                for element in elements
                if id(element) not in registered and _trainable(element, registered, called)
            ]
            # a list of one is the usual way to keep a module from its owner on purpose
            hides = kind != "dict" and len(elements) == 1
            place = of_attribute(type(holder), attribute) if not hides else None
            if place is not None and all(_is_held(element, registered) for element in elements):
                count = len(elements)
                because = f"an optimizer or module holds all {count} elements"
                yield Refutation(place, because, {"elements": count, "held by an optimizer or module": count})
            elif place is not None and lost:
                first = type(lost[0]).__name__
                element = "Parameter" if isinstance(lost[0], Tensor) else "Module"
                registering = element + ("Dict" if kind == "dict" else "List")
                message = f"`{first}` in the plain {kind} `self.{attribute}` is not trained, moved or saved: use `nn.{registering}`"
                yield Suspicion(place, message, {"elements": len(lost)}, hides=Sight.LAYERS)


def _hold_parameters(forward: Forward) -> bool:
    """Whether a module has parameters in a container; modules in one show in the calls."""
    holders = {id(call.module): call.module for call in forward.calls}.values()
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


def _trainable(element: nn.Module | nn.Parameter, registered: set[int], called: set[int]) -> bool:
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
