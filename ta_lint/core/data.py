"""Strict loader for what the linter knows about torch and its libraries: the tables in `ta_lint/data/*.toml`.

A type describes the content of a file: `dict[str, Symbol]` is one table per symbol, with the fields of the NamedTuple
`Symbol` as keys; a field `name` holds the name of the table. A type with a method `of` is written as text that `of`
parses; a NamedTuple is a table or such text.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from ta_lint.core.toml import parsed

FOLDER = f"{__file__.removesuffix('core/data.py')}data"

T = TypeVar("T")
_Reader = Callable[[Any], Any]

_PLAIN = {str: "text", bool: "true or false", int: "a whole number"}


class DataError(ValueError):
    """A data file is wrong: the message names the file, the table, the key and the problem."""


@cache
def tables(name: str) -> dict[str, Any]:
    """The content of a file, unchecked.

    Raises:
        DataError: the file is not valid TOML, or has a table or key twice.
    """
    with open(f"{FOLDER}/{name}", encoding="utf-8") as stream:  # noqa: PTH123 - in every run: a `Path` costs more than a table
        text = stream.read()
    try:
        return parsed(text)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error


def read(name: str, shape: type[T]) -> T:
    """The content of a file as a value of type `shape`.

    Raises:
        DataError: the content does not match the type, for example because of an unknown key.
    """
    fields = tables(name)
    try:
        found: T = _reader(cast("Any", shape))(fields)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error
    return found


@cache
def _reader(shape: Any) -> _Reader:
    """A function that turns a TOML value into a value of a type, and raises ValueError if it does not match."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is UnionType:  # `T | None`: a file leaves the key out for None
        (shape,) = (one for one in inner if one is not NoneType)
        return _reader(shape)
    if origin is Literal:
        return _one_of(inner)
    if origin is tuple:
        return _listed(_reader(inner[0]))
    if origin in (dict, Mapping):
        return _by_name(_reader(inner[1]))
    if shape in _PLAIN:
        return _plain(shape, shape)
    return _record(shape) if hasattr(shape, "_fields") else _plain(str, shape.of)


def _plain(shape: type, made: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if type(value) is not shape:
            raise ValueError(f"{value!r} is not {_PLAIN[shape]}")
        return made(value)

    return read


def _one_of(words: tuple[str, ...]) -> _Reader:
    def read(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"{value!r} is not {' or '.join(words)}")
        return value

    return read


def _listed(item: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError(f"{value!r} is not a list")
        return tuple(map(item, value))

    return read


def _by_name(item: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a table")
        found = {name: _at(name, item, each) for name, each in value.items()}
        for name, each in found.items():
            if hasattr(each, "name"):
                found[name] = each._replace(name=name)
        return found

    return read


def _record(shape: Any) -> _Reader:
    """The reader of a NamedTuple: a table with its fields as keys, or the text that its `of` parses."""
    fields = {name: _reader(kind) for name, kind in shape.__annotations__.items() if name != "name"}
    needed = [name for name in fields if name not in shape._field_defaults]
    of = getattr(shape, "of", None)

    def read(value: Any) -> Any:
        if of is not None and type(value) is str:
            return of(value)
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a table")
        for name in value:
            if name not in fields:
                raise ValueError(f"there is no key {name!r}; the keys are {', '.join(fields)}")
        found = {name: _at(name, fields[name], each) for name, each in value.items()}
        for name in needed:
            if name not in value:
                raise ValueError(f"{name}: missing")
        return shape(**found)

    return read


def _at(name: str, reader: _Reader, value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
