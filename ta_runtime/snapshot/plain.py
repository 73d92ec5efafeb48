"""Values as YAML itself has them: None, bools, numbers, texts, lists and mappings, none of which names a class of Python."""

import ast
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from os import PathLike, fspath
from typing import Any

import torch
from torch import Tensor

from ta_lint.core.files import encodable

_DEPTH = 32

Plain = None | bool | int | float | str | list[Any] | dict[Any, Any]


def plain(value: Any, depth: int = _DEPTH) -> Plain:
    """A value of any kind, so that what is written of it can be read by `yaml.safe_load`.

    Subclasses lose their class, and tensors and arrays are lists; what is none of these is its `str`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return encodable(str(value.name))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return encodable(str.__str__(value))
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    if isinstance(value, PathLike):
        return plain(fspath(value))
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return _compound(value, depth - 1) if depth else encodable(str(value))


def _compound(value: Any, depth: int) -> Plain:
    """A value that consists of others, each made plain; what consists of none is its `str`."""
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name, None), depth) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {str(name): plain(item, depth) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item, depth) for item in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item, depth) for item in value]
    if isinstance(value, Tensor) or type(value).__module__ == "numpy":
        return plain(value.tolist(), depth)
    return encodable(str(value))


def read(text: str) -> Plain:
    """The value whose `repr` a setting was recorded as; a text that is none stays one."""
    if text in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return encodable(text)


def read_word(text: str) -> Plain:
    """The same of a setting that is a word: `True`, `None` or a whole number, but no version such as `2.10`."""
    return (
        read(text) if text in ("True", "False", "None") or text.lstrip("-").isdecimal() else encodable(text)
    )


def _key(key: Any) -> bool | int | float | str | None:
    value = plain(key)
    return (
        str(value)
        if isinstance(value, (list, dict)) or (isinstance(value, float) and math.isnan(value))
        else value
    )
