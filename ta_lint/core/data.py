"""What the linter knows of torch and its libraries, as `ta_lint/data/*.toml` lists it, read strictly.

What a file holds is said by a type: `dict[str, Symbol]` is a table for each symbol, with the fields of the NamedTuple `Symbol`
as keys; a field `name` is the name of the table. A type that has `of` is written as text, which `of` reads; a NamedTuple as a
table or as such text.
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
    """A data file that is wrong: which file, which table and key, and what is the matter."""


@cache
def tables(name: str) -> dict[str, Any]:
    """What a file holds, unchecked.

    Raises:
        DataError: the file is no TOML, or has a table or a key twice.
    """
    with open(f"{FOLDER}/{name}", encoding="utf-8") as stream:  # noqa: PTH123 - in every run: a `Path` costs more than a table
        text = stream.read()
    try:
        return parsed(text)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error


def read(name: str, shape: type[T]) -> T:
    """What a file holds, as a type.

    Raises:
        DataError: it holds something else, an unknown key for one.
    """
    fields = tables(name)
    try:
        found: T = _reader(cast("Any", shape))(fields)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error
    return found


@cache
def _reader(shape: Any) -> _Reader:
    """What makes a value of a type of what TOML has for it, and raises ValueError where it is something else."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is UnionType:  # of a type and None, which a file says by leaving the key out
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
    """Of a NamedTuple: a table with its fields as keys, or the text that its `of` reads."""
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
