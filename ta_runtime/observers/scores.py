"""Measures what a loss is given as its input: which function made it, by its graph, and what is in its first rows."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import Scores
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.measure.scalars import Readings

if TYPE_CHECKING:
    from torch.autograd.graph import Node

_MOST = 1 << 18
"""Elements that are looked at: what a row is, its neighbours are too."""
_FAR = 16  # nodes between a loss and what made its input

_MAKERS = {
    "SoftmaxBackward0": "softmax",
    "LogSoftmaxBackward0": "log_softmax",
    "SigmoidBackward0": "sigmoid",
    "LogSigmoidBackward0": "logsigmoid",
    "LogBackward0": "log",
    "ReluBackward0": "relu",
    "TanhBackward0": "tanh",
    "AddmmBackward0": "linear",
    "MmBackward0": "linear",
    "LinearBackward0": "linear",
    "ConvolutionBackward0": "convolution",
}
_PASSING = frozenset(
    f"{name}Backward{number}"
    for name in (
        "Alias", "Clone", "Expand", "Index", "IndexSelect", "MaskedSelect", "Permute", "ReshapeAlias", "Select", "Slice",
        "Squeeze", "T", "ToCopy", "Transpose", "Unflatten", "UnsafeView", "Unsqueeze", "View",
    )
    for number in (0, 1, 2)
)  # fmt: skip
_PICKING = ("Index", "MaskedSelect", "Select", "Slice")


def made(tensor: Tensor) -> Scores:
    """Which function computed a tensor, behind whatever only views, casts or picks, if it is one of those listed."""
    node, is_whole = tensor.grad_fn, True
    for _ in range(_FAR):
        if node is None or node.name() not in _PASSING:
            break
        is_whole = is_whole and not node.name().startswith(_PICKING)
        node = node.next_functions[0][0]
    if node is None:
        return Scores("")
    soft = (
        node.next_functions[-1][0] if node.name() == "AddBackward0" else node
    )  # `hard=True` adds it to what is drawn
    if soft is not None and soft.name() == "SoftmaxBackward0" and _is_sampled(soft):
        return Scores("", are_sampled=True)
    return Scores(_MAKERS.get(node.name(), ""), are_whole=is_whole)


def _is_sampled(softmax: "Node") -> bool:
    """Whether it is that of `gumbel_softmax`: of scores with noise, over a temperature."""
    names: list[str] = []
    node = softmax.next_functions[0][0]
    while node is not None and len(names) < 2:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names == ["DivBackward0", "AddBackward0"]


def measure(scores: Scores, given: Tensor, axis: int | None, readings: Readings) -> None:
    """Range and, along the `axis` of the classes, sums of the first rows. Call it under `torch.no_grad()`."""
    values = local(given.detach())
    if not measurable(values) or values.is_complex() or values.numel() == 0:
        return
    if values.dim() > 1:
        values = values[: max(1, _MOST * len(values) // values.numel())]
    values = values.float()
    numbers = [*torch.aminmax(values)]
    if axis is not None:
        numbers += [values.sum(axis).mean(), values.exp().sum(axis).mean()]

    def deliver(read: list[float]) -> None:
        scores.minimum, scores.maximum = read[:2]
        if axis is not None:
            scores.row_sum, scores.exponential_sum = read[2:]

    readings.scalars(numbers, deliver)
