"""The libraries that make a file relevant: torch and what is built on it, as listed in `ta_lint/data/libraries.toml`.

This check runs first on every file, so it searches bytes for imports, and both patterns begin with literal letters,
for which `re` searches fastest.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from ta_lint.core.data import read

Enough = Literal["mentioned", "imported"]

_FROM = re.compile(rb"from[ \t]+(\w+)")
_IMPORT = re.compile(rb"import[ \t]+(\w[\w., \t]*)")
_BEFORE_A_STATEMENT = (b";", b":")


def is_ours(data: bytes) -> bool:
    """Whether a file mentions torch, or imports a library that is built on it."""
    return _mentions(data) or any(_begins_statement(data, start) for start in _imports(data))


def may_be_ours(data: bytes) -> bool:
    """As `is_ours`, for a file that contains code, such as a notebook: an import counts anywhere in a line."""
    return _mentions(data) or next(_imports(data), None) is not None


@cache
def libraries() -> dict[str, Enough]:
    """The libraries, each with whether a mention is enough or it must be imported.

    Raises:
        DataError: the table has an unknown value.
    """
    return read("libraries.toml", dict[str, Enough])


def _mentions(data: bytes) -> bool:
    for name in _names("mentioned"):  # noqa: SIM110 - a generator costs more than the search
        if name in data:
            return True
    return False


@cache
def _names(enough: Enough) -> frozenset[bytes]:
    return frozenset(name.encode() for name, value in libraries().items() if value == enough)


def _imports(data: bytes) -> Iterator[int]:
    """Where a file may import one of the libraries, including matches in prose and strings."""
    names = _names("imported")
    for match in _FROM.finditer(data):
        if match[1] in names:
            yield match.start()
    for match in _IMPORT.finditer(data):
        if any(_first_word(item) in names for item in match[1].split(b",")):
            yield match.start()


def _first_word(item: bytes) -> bytes:
    """`transformers` for `transformers.utils as utils`."""
    return item.split(b" as ")[0].partition(b".")[0].strip()


def _begins_statement(data: bytes, start: int) -> bool:
    line = data[data.rfind(b"\n", 0, start) + 1 : start].strip(b" \t\f")
    return not line or line.endswith(_BEFORE_A_STATEMENT)
