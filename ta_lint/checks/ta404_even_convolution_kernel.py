"""TA404: a convolution pads an even kernel equally on both sides, so its output is shifted and one larger."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument

KEYWORDS = (("Conv1d", "Conv2d", "Conv3d", "LazyConv1d", "LazyConv2d", "LazyConv3d"),)

_CONVOLUTION = regex(r"torch\.nn\.(Lazy)?Conv([123])d")
_DEFAULTS = {"kernel_size": 1.0, "stride": 1.0, "padding": 0.0, "dilation": 1.0}


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, made in module.calls_matching(_CONVOLUTION):
        sizes = _sizes(module, call, axes=int(made[2]), first=1 if made[1] else 2)
        if sizes is not None and any(map(_grows_by_one, *sizes)):
            layer = module.code(call.func)
            message = f"this `{layer}` pads an even kernel equally, which shifts and enlarges the output: use an odd kernel"
            yield Suspicion(call, message)


def _sizes(module: FileFacts, call: cst.Call, axes: int, first: int) -> tuple[list[float], ...] | None:
    """Kernel, stride, padding and dilation of a convolution along each axis, if the file shows all of them.

    `first` is the position of the kernel among the arguments, which a lazy convolution has earlier.
    """
    found: list[list[float]] = []
    for position, (keyword, default) in enumerate(_DEFAULTS.items(), first):
        along = _along_axes(module, argument(call, keyword, position), axes, default)
        if along is None:
            return None
        found.append(along)
    return tuple(found)


def _along_axes(module: FileFacts, value: Node | None, axes: int, default: float) -> list[float] | None:
    """The numbers of a tuple, one per axis, or a single number for all axes."""
    if value is None:
        return [default] * axes
    if isinstance(value, (cst.Tuple, cst.List)):
        numbers = [module.number(element.value) for element in value.elements]
        found = [number for number in numbers if number is not None]
        return found if len(found) == len(numbers) == axes else None
    number = module.number(value)
    return [number] * axes if number is not None else None


def _grows_by_one(kernel: float, stride: float, padding: float, dilation: float) -> bool:
    """Whether padding meant to keep the size, such as `kernel_size // 2` for odd kernels, makes it one larger.

    A padding of `dilation * (kernel_size - 1)` is for causal convolutions, which cut the end off.
    """
    reach = dilation * (kernel - 1)
    return kernel % 2 == 0 and stride == 1 and 2 * padding == reach + 1 and padding < reach
