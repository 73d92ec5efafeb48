"""Tries a model on copies of its weights: whether its samples mix, and whether it can learn the batch that it was given."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from ta_runtime.audit.trial import as_it_was
from ta_runtime.facts import Mixing, Overfitting
from ta_runtime.measure.tree import tensors
from ta_runtime.preflight.replay import NoReplay, Replay, ReplayedLoss, Weights

SECONDS = 8.0
"""How long a copy is trained."""
STEPS = 30
"""On one batch at one rate, at most."""
RATES = (1e-3, 1e-2, 1e-1)
"""Of Adam, one after the other until the loss falls."""
FALLS = 0.9
"""Of the first loss: what has come down to it can learn."""
_ROUNDING, _HALF = 1e-3, 3e-2
"""Of the largest output: what another batch may change of a sample by rounding, in single and in half precision."""
_SMALL = {"mse_loss": 1e-3, "cross_entropy": 0.05}
"""Losses that have nowhere to fall: over the squares of the targets, and as they are."""


def mixing(replay: Replay, size: int) -> Mixing:
    """Whether the output of the first of so many samples depends on the others.

    Raises:
        NoReplay: it cannot be told which of the dimensions are samples, or the model is meant to look at its batch.
    """
    model = replay.model
    if size < 2:
        raise NoReplay("a batch of one sample mixes nothing")
    if any(isinstance(module, _BatchNorm) and module.running_mean is None for module in model.modules()):
        raise NoReplay("a batch norm without running statistics mixes its batch")
    for tensor in replay.given:
        if tensor.dim() and (tensor.shape[0] != size or (tensor.dim() > 2 and tensor.shape[1] == size)):
            raise NoReplay("not all inputs have the samples in their first dimension, and there alone")

    weights = replay.weights()
    together, again = _evaluated(replay, weights), _evaluated(replay, weights)
    numbers = [
        number
        for number, (one, other) in enumerate(zip(together, again, strict=True))
        if one.is_floating_point() and one.dim() > 1 and one.shape[0] == size != one.shape[1]
        and torch.equal(one, other) and bool(one.isfinite().all())
    ]  # fmt: skip
    if not numbers:
        raise NoReplay("the model returns nothing, the same twice, that has a row for each sample")
    change = 0.0
    for row in (0, size - 1):  # what reads its batch as time may tell the last of them alone
        apart = _evaluated(replay, weights, partial(_repeated, row=row))
        for number in numbers:
            one, other = together[number], apart[number]
            if one.shape == other.shape:
                largest = float(one.abs().amax()) or 1.0
                change = max(change, float((one[row] - other[row]).abs().amax()) / largest)
    half = replay.call.autocast is not None or any(together[number].dtype.itemsize == 2 for number in numbers)
    rounding = _HALF if half else _ROUNDING
    return Mixing(replay.call.place, type(model).__name__, size, change, rounding)


def _repeated(tensor: Tensor, row: int) -> Tensor:
    """A batch of copies of one of its samples."""
    return tensor[row].expand_as(tensor).contiguous() if tensor.dim() else tensor


def _evaluated(
    replay: Replay, weights: Weights, change: Callable[[Tensor], Tensor] = lambda tensor: tensor
) -> list[Tensor]:
    """What the model returns in evaluation mode, each time from the same random numbers."""
    with as_it_was(replay.model), torch.no_grad():
        for module in replay.model.modules():
            module.training = False
        return [tensor.clone() for _, tensor in tensors(replay(weights, change))]


@dataclass(slots=True)
class Training:
    """What a copy of a model learnt of one batch."""

    overfitting: Overfitting
    silent: dict[str, int] = field(default_factory=dict)
    """Parameters whose gradient was zero in each step, with how many these were."""


def overfit(replay: Replay, loss: ReplayedLoss, trained: Iterable[int]) -> Training:
    """Train copies of the parameters with these ids on the batch alone, without dropout."""
    until = time.monotonic() + SECONDS
    wanted = set(trained)
    names = [
        name
        for name, tensor in replay.model.named_parameters()
        if tensor.requires_grad and id(tensor) in wanted
    ]
    first, lowest, most = math.nan, math.inf, 0
    rates: list[float] = []
    silent: dict[str, int] | None = None
    for rate in RATES:
        losses, zero = _trained(replay, loss, names, rate, until)
        if len(losses) < 2:
            break
        first, lowest, most = losses[0], min(lowest, *losses), max(most, len(losses) - 1)
        silent = zero if silent is None else {name: steps for name, steps in silent.items() if name in zero}
        if len(losses) > STEPS:
            rates.append(rate)
        if lowest <= first - (1 - FALLS) * abs(first) or time.monotonic() > until:
            break
    if not math.isfinite(first):
        raise NoReplay("its steps take too long, or its loss is not finite")
    floor = _floor(loss)
    return Training(Overfitting(loss.place, first, lowest, most, tuple(rates), floor), silent or {})


def _floor(loss: ReplayedLoss) -> float:
    if loss.target is not None and loss.target.is_floating_point():
        return _SMALL["mse_loss"] * float(loss.target.to(torch.float64).square().mean())
    return _SMALL["cross_entropy"]


def _trained(
    replay: Replay, loss: ReplayedLoss, names: list[str], rate: float, until: float
) -> tuple[list[float], dict[str, int]]:
    """The losses of the steps, and the parameters whose gradients were zero in each of them."""
    weights = replay.weights()
    learning = [weights[name] for name in names]
    adam = _Adam(learning, rate)
    losses: list[float] = []
    zero = dict.fromkeys(names, 0)
    with as_it_was(replay.model), torch.enable_grad():
        _without_dropout(replay.model)
        for _ in range(STEPS + 1):
            value = loss(replay(weights))
            losses.append(float(value.detach()))
            if not math.isfinite(losses[-1]) or time.monotonic() > until:
                break
            falls = losses[-1] <= losses[0] - (1 - FALLS) * abs(losses[0])
            if falls and not zero:
                break
            gradients = torch.autograd.grad(value, learning, allow_unused=True) if learning else ()
            for name, gradient in zip(names, gradients, strict=True):
                if name in zero and (gradient is None or bool(gradient.count_nonzero())):
                    del zero[name]
                elif name in zero:
                    zero[name] += 1
            adam.step(gradients)
    return losses, zero


def _without_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, (_DropoutNd, nn.RNNBase, nn.MultiheadAttention)):
            module.training = False


class _Adam:
    """Adam, by hand: an optimizer of torch would be one of the run."""

    def __init__(self, weights: list[Tensor], rate: float) -> None:
        self._weights, self._rate, self._steps = weights, rate, 0
        self._means = [torch.zeros_like(weight) for weight in weights]
        self._squares = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor | None]) -> None:
        self._steps += 1
        first, second = 1 - 0.9**self._steps, 1 - 0.99**self._steps
        for weight, gradient, mean, square in zip(
            self._weights, gradients, self._means, self._squares, strict=True
        ):
            if gradient is None:
                continue
            if gradient.layout is not torch.strided:
                gradient = gradient.to_dense()
            mean.lerp_(gradient, 0.1)
            square.lerp_(gradient.square(), 0.01)
            weight.sub_(self._rate * (mean / first) / ((square / second).sqrt() + 1e-8))
