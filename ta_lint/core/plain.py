"""Builds dataclasses from plain JSON values and validates them, as a stranger may have written the JSON.

msgspec does the same, but importing it takes longer than a whole run over unchanged files.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

Read = Callable[[Any], Any]


@cache
def reader(kind: Hashable) -> Read:
    """A function that turns a plain value into a value of a declared type, and raises ValueError if it does not match."""
    if is_dataclass(kind):
        return _dataclass(kind)
    if isinstance(kind, UnionType):
        none_first = sorted(get_args(kind), key=lambda option: option is not NoneType)
        return _any_of(list(map(reader, none_first)))
    if get_origin(kind) is tuple:
        item = reader(get_args(kind)[0])
        return lambda value: tuple(map(item, _exactly(value, list, tuple)))
    if get_origin(kind) is Mapping:
        key, item = map(reader, get_args(kind))
        return lambda value: {key(name): item(held) for name, held in _exactly(value, dict).items()}
    assert isinstance(kind, type)
    return kind if issubclass(kind, Enum) else lambda value: _exactly(value, kind)


def _dataclass(kind: Any) -> Read:
    declared: list[tuple[str, Any]] = [(field.name, field.type) for field in fields(kind)]
    parts = {name: reader(of) for name, of in declared}

    def read(value: Any) -> Any:
        if _exactly(value, dict).keys() != parts.keys():
            raise ValueError
        return kind(**{name: part(value[name]) for name, part in parts.items()})

    return read


def _any_of(options: list[Read]) -> Read:
    def read(value: Any) -> Any:
        for option in options[:-1]:
            try:
                return option(value)
            except ValueError:
                continue
        return options[-1](value)

    return read


def _exactly(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:  # `isinstance` takes `True` for an `int`
        raise ValueError
    return value
