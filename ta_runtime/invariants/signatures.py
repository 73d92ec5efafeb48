"""Reads the words of a trace: the dtypes and shapes of what goes into a call and comes out of it.

There are few different ones of a call, so that each is read once.
"""

import re
from functools import lru_cache

Signature = tuple[tuple[str, tuple[int, ...]], ...]
"""Of tensors in order: dtype and shape."""

_INPUT = re.compile(r"(\w+)\[([\d,*]*)\]")
_RAGGED = -1
_FLOATS = ("float", "bfloat", "complex", "half", "double")


@lru_cache(maxsize=4096)
def inputs(text: str) -> Signature:
    """Of `Event.inputs`, such as `float32[32,10]; int64[32]`."""
    return tuple((dtype, _sizes(sizes)) for dtype, sizes in _INPUT.findall(text))


@lru_cache(maxsize=4096)
def outputs(dtype: str, shape: str) -> Signature:
    """Of `Event.dtype` and `Event.shape`, such as `float32; int64` and `32,10; 32`; a scalar has an empty shape."""
    if not dtype:
        return ()
    return tuple(zip(dtype.split("; "), map(_sizes, shape.split("; ")), strict=True))


def is_float(dtype: str) -> bool:
    """Whether a dtype, or the first of several, can have a gradient."""
    return dtype.startswith(_FLOATS)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_RAGGED if size == "*" else int(size) for size in text.split(",")) if text else ()
