"""Tells by the graph whether a loss is a mean, and what it was divided by."""

from typing import Any

from torch import Tensor

_MEANS = ("MeanBackward0", "MeanBackward1")
_MEAN = 1  # the reduction as ATen counts them


def divisor(loss: Tensor, reads: bool) -> float | None:
    """What a mean over samples was divided by, 1 if by nothing; None if the loss is no mean, or is made in another way.

    `reads` allows an operation on the CPU, that takes the divisor out of the graph.
    """
    node = loss.grad_fn
    if node is None or _is_mean(node):
        return None if node is None else 1.0
    name = node.name()
    if name not in ("DivBackward0", "MulBackward0") or not reads:
        return None
    other = getattr(node, "_saved_other", None)
    inner = node.next_functions[0][0]
    if inner is None or not _is_mean(inner) or not isinstance(other, Tensor):
        return None
    if other.dim() or other.device.type != "cpu" or other.requires_grad:
        return None
    factor = float(other)
    if not factor:
        return None
    return factor if name == "DivBackward0" else 1.0 / factor


def _is_mean(node: Any) -> bool:
    return node.name() in _MEANS or getattr(node, "_saved_reduction", None) == _MEAN
