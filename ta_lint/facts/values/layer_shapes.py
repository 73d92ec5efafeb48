"""What the layers of torch make of the shape of a tensor; None if that is not known."""

from collections.abc import Callable

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.syntax.tree import Node, argument

Shape = tuple[int | None, ...]
"""The size of each dimension, None where it is not known."""

Size = Callable[[Node], int | None]

_KEEPS = regex(
    r"torch\.nn\.(\w*Dropout\w*|(Sync)?BatchNorm(\dd)?|(Instance|Layer|Group|RMS)Norm(\dd)?|Identity|\w*ReLU6?|C?ELU|GELU|SELU|"
    r"SiLU|Mish|\w*Sigmoid|Hardswish|\w*Tanh|Softplus|Soft(max|min|sign)|LogSoftmax)"
)
_LINEAR = "torch.nn.Linear"
_EMBEDDING = "torch.nn.Embedding"
_FLATTEN = "torch.nn.Flatten"
_CONVOLUTION = regex(r"torch\.nn\.Conv(Transpose)?([123])d")
_POOLING = regex(r"torch\.nn\.(Adaptive)?(Avg|Max)Pool([123])d")


def through(layer: str, made: cst.Call, before: Shape, size: Size) -> Shape | None:
    """The shape of what a layer returns for a tensor of a known shape."""
    if _KEEPS.fullmatch(layer):
        return before
    if layer == _LINEAR:
        return (*before[:-1], _given(made, "out_features", 1, size)) if before else None
    if layer == _EMBEDDING:
        return (*before, _given(made, "embedding_dim", 1, size))
    if layer == _FLATTEN:
        return (before[0], None) if len(before) > 1 and not made.args else None
    if (found := _CONVOLUTION.fullmatch(layer)) and len(before) == 2 + int(found[2]):
        return (before[0], _given(made, "out_channels", 1, size), *(None for _ in before[2:]))
    if (found := _POOLING.fullmatch(layer)) and len(before) == 2 + int(found[3]):
        indices = argument(made, "return_indices")
        return (*before[:2], *(None for _ in before[2:])) if indices is None else None
    return None


def _given(made: cst.Call, keyword: str, place: int, size: Size) -> int | None:
    value = argument(made, keyword, place)
    return size(value) if value is not None else None


def reduced(before: Shape, dims: tuple[int, ...], keeps: bool) -> Shape | None:
    """The shape of a sum or mean over some dimensions."""
    if not all(-len(before) <= dim < len(before) for dim in dims):
        return None
    gone = {dim % len(before) for dim in dims}
    left = [1 if place in gone else size for place, size in enumerate(before) if keeps or place not in gone]
    return tuple(left)


def flattened(before: Shape, first: int, last: int) -> Shape | None:
    """The shape with the dimensions from the first to the last made one."""
    if not all(-len(before) <= dim < len(before) for dim in (first, last)):
        return None
    start, end = first % len(before), last % len(before) + 1
    return (*before[:start], product(before[start:end]), *before[end:])


def product(sizes: Shape) -> int | None:
    count = 1
    for size in sizes:
        if size is None:
            return None
        count *= size
    return count


def joined(first: Shape, dim: int | None) -> Shape:
    """The shape of several tensors put together along a dimension, of which the first is known."""
    if dim is None or not -len(first) <= dim < len(first):
        return tuple(None for _ in first)
    return (*first[: dim % len(first)], None, *first[dim % len(first) + 1 :])
