"""The first step once more, on copies: the same call of the model, and the loss that the script made of its output."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from ta_runtime.audit.trial import inner, unsuited
from ta_runtime.measure.tree import tensors
from ta_runtime.preflight.watching import FirstStep, LossCall, ModelCall
from ta_runtime.probes.places import Place

Weights = Mapping[str, Tensor]
Way = Callable[[Tensor], Tensor]
"""What a script may do to an output before it gives it to a loss."""


class NoReplay(Exception):
    """The step cannot be made again; the text says why, as the end of a sentence."""


class Replay:
    """The only call of a model in a step that was noted.

    Raises:
        NoReplay: there are several, or none, or the model would keep traces of it.
    """

    def __init__(self, first: FirstStep) -> None:
        if first.compiles:
            raise NoReplay("the script uses `torch.compile`")
        call = first.training_call
        if call is None:
            count = len(first.calls)
            why = (
                "no model was called with gradients" if not count else f"the step calls models {count} times"
            )
            raise NoReplay(why if count != 1 else "no gradient flows from what the model returns")
        self.call: ModelCall = call
        self.model: nn.Module = inner(call.module)
        if (why_not := unsuited(self.model)) is not None:
            raise NoReplay(why_not)
        self.args, self.kwargs = pytree.tree_map_only(Tensor, _copy, (call.args, call.kwargs))

    @property
    def given(self) -> list[Tensor]:
        """The tensors that go in."""
        return [tensor for _, tensor in (*tensors(self.args), *tensors(self.kwargs))]

    def weights(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers."""
        held = (*self.model.named_parameters(), *self.model.named_buffers())
        return {name: _copy(tensor).requires_grad_(tensor.requires_grad) for name, tensor in held}

    def __call__(self, weights: Weights, change: Callable[[Tensor], Tensor] = lambda tensor: tensor) -> Any:
        """What the model returns, of inputs that were changed."""
        args, kwargs = pytree.tree_map_only(Tensor, change, (self.args, self.kwargs))
        device = next(self.model.parameters()).device.type
        autocast = self.call.autocast
        casting = nullcontext() if autocast is None else torch.autocast(device, dtype=autocast)
        with casting:
            return functional_call(self.model, dict(weights), args, kwargs)


class ReplayedLoss:
    """The loss of the step, from what the model returns.

    Raises:
        NoReplay: what lies between the two is the script's own.
    """

    def __init__(self, first: FirstStep, call: ModelCall) -> None:
        self.place: Place = call.place
        outputs = [tensor for _, tensor in tensors(call.result)]
        scalars = [
            index
            for index, tensor in enumerate(outputs)
            if tensor.numel() == 1 and tensor.dim() == 0 and tensor.requires_grad
        ]
        self._scalar = scalars[0] if len(scalars) == 1 else None
        self._parts: list[tuple[LossCall, int, Way]] = []
        self.target: Tensor | None = None
        if self._scalar is not None:
            return
        for loss in first.losses:
            if (found := _way(loss.given(0, "input"), outputs)) is None or not _is_scalar(loss.result):
                raise NoReplay("what lies between the model and its loss is the script's own")
            self._parts.append((loss, *found))
        if not self._parts:
            raise NoReplay("the loss is the script's own")
        self.place = first.losses[0].place
        if len(first.losses) == 1 and isinstance(target := first.losses[0].given(1, "target"), Tensor):
            self.target = target.detach()

    def __call__(self, result: Any) -> Tensor:
        outputs = [tensor for _, tensor in tensors(result)]
        if self._scalar is not None:
            return outputs[self._scalar]
        parts = [_again(loss, way(outputs[index])) for loss, index, way in self._parts]
        return torch.stack(parts).sum()


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _is_scalar(value: object) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1


def _again(loss: LossCall, given: Tensor) -> Tensor:
    args, kwargs = list(loss.args), dict(loss.kwargs)
    if args:
        args[0] = given
    else:
        kwargs["input"] = given
    targets = pytree.tree_map_only(Tensor, torch.detach, (args[1:], kwargs))
    named = {**targets[1], "input": given} if not args else targets[1]
    result: Tensor = loss.function(*args[:1], *targets[0], **named)
    return result


def _way(wanted: object, outputs: list[Tensor]) -> tuple[int, Way] | None:
    """Which output a loss was given, and what was done to it: what gives the very same values."""
    if not isinstance(wanted, Tensor):
        return None
    for index, output in enumerate(outputs):
        if output is wanted:
            return index, lambda tensor: tensor
    for index, output in enumerate(outputs):
        for way in _ways(wanted) if output.is_floating_point() else ():
            if _leads(way, output, wanted):
                return index, way
    return None


def _ways(wanted: Tensor) -> Iterator[Way]:
    shape = wanted.shape
    shapes: list[Way] = [
        lambda tensor: tensor,
        lambda tensor: tensor[..., :-1, :],
        lambda tensor: tensor[:, -1],
        lambda tensor: tensor[:, 0],
        lambda tensor: tensor.transpose(1, -1),
        lambda tensor: tensor.movedim(1, -1),
    ]
    lasts: list[Way] = [
        lambda tensor: tensor,
        torch.sigmoid,
        lambda tensor: torch.log_softmax(tensor, -1),
        lambda tensor: torch.softmax(tensor, -1),
        lambda tensor: tensor.to(wanted.dtype),
    ]
    for first in shapes:
        for last in lasts:
            yield lambda tensor, first=first, last=last: last(first(tensor)).reshape(shape)  # type: ignore[misc]


def _leads(way: Way, output: Tensor, wanted: Tensor) -> bool:
    try:
        with torch.no_grad():
            found = way(output.detach())
    except (RuntimeError, IndexError):  # of another shape
        return False
    return found.dtype is wanted.dtype and torch.equal(found, wanted.detach())
