"""Torch symbols that were removed, deprecated or never public; `ta_lint/data/torch_symbols.toml` explains each key."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from ta_lint.core.data import DataError, read, tables

_FILE = "torch_symbols.toml"
_NONE: Mapping[str, str] = MappingProxyType({})

Status = Literal["removed", "deprecated", "private"]


class Release(tuple[int, int]):
    """A release of torch: 1.13 is `(1, 13)`."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> "Release":
        """Raises ValueError for a release that does not exist, such as 1.14: 2.0 came after 1.13."""
        match = re.fullmatch(r"(1|2)\.(0|[1-9]\d?)", text)
        if match is None or (text.startswith("1.") and int(match[2]) > 13):
            raise ValueError(f"{text!r} is no release of torch, such as 1.13 or 2.0")
        return cls((int(match[1]), int(match[2])))

    def __str__(self) -> str:
        return f"{self[0]}.{self[1]}"


class Rewrite(NamedTuple):
    """How a call of the old name becomes a call of the new one, beyond the name itself."""

    first_argument: str = ""
    last_argument: str = ""
    parameters: tuple[str, ...] | None = None
    positional: int | None = None
    at_least: int = 0
    as_keywords: bool = False
    renamed: Mapping[str, str] = _NONE
    numbers: tuple[str, ...] = ()
    drops: Mapping[str, str] = _NONE
    values: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    same_result_with: tuple[str, ...] = ()
    as_list: bool = False
    end_included: bool = False
    decorates: bool = False
    suffix: str = ""

    @classmethod
    def of(cls, text: str) -> "Rewrite":
        if text != "rename":
            raise ValueError(f"{text!r} is not rename, nor a table")
        return cls()

    @property
    def renames_only(self) -> bool:
        """Whether every use of the old name can simply be renamed."""
        return self == Rewrite()


class Symbol(NamedTuple):
    """A name of torch: its full path, or for a method `Tensor.symeig` or `Module.register_backward_hook`; of an argument, in parentheses
    behind what takes it, which is a function, a method, or everything in a module.
    """

    name: str = ""
    kind: Literal["callable", "attribute", "method", "module", "argument"] = "callable"
    private: bool = False
    deprecated: Release | None = None
    quiet: bool = False
    removed: Release | None = None
    replacement: str = ""
    replacement_since: Release | None = None
    in_favor_of: str = ""
    same_result: bool = False
    moved: tuple[str, ...] = ()
    fix: Rewrite | None = None

    @property
    def last(self) -> str:
        return _last(self.name)

    @property
    def advice(self) -> str:
        """The replacement as the message names it; empty if there is none."""
        return self.in_favor_of or (f"`{self.replacement}`" if self.replacement else "")


@cache
def symbols() -> dict[str, Symbol]:
    """All symbols, by name.

    Raises:
        DataError: an entry is invalid or contradicts itself.
    """
    found = read(_FILE, dict[str, Symbol])
    for name, symbol in found.items():
        if matter := _contradiction(symbol):
            raise DataError(f"{_FILE}: {name}: {matter}")
    return found


@cache
def last_names(*kinds: str) -> frozenset[str]:
    """The last names of the symbols of these kinds."""
    return frozenset(symbol.last for symbol in symbols().values() if symbol.kind in kinds)


def keywords(status: Status) -> tuple[str, ...]:
    """The last names of all symbols with this status: a file that uses such a symbol contains one of them."""
    return tuple(sorted({_last(name) for name, symbol in tables(_FILE).items() if status in symbol}))


def _last(name: str) -> str:
    """`symeig` of `Tensor.symeig`, and `retain_variables` of `Tensor.backward(retain_variables)`."""
    return re.split(r"[.(]", name.removesuffix(")"))[-1]


def _contradiction(symbol: Symbol) -> str:
    if not (symbol.deprecated or symbol.removed or symbol.private):
        return "neither deprecated nor removed nor private"
    if symbol.deprecated and symbol.removed and symbol.deprecated >= symbol.removed:
        return f"deprecated: {symbol.deprecated} is not before removed: {symbol.removed}"
    if bool(symbol.replacement) != (symbol.replacement_since is not None):
        return "replacement and replacement_since: one without the other"
    if (symbol.fix is not None or symbol.moved or symbol.private) and not symbol.replacement:
        return "replacement: missing, although there is a fix, names that moved, or a public name to say"
    return ""
