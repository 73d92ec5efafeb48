"""The libraries that make a file ours: torch, and what is built on it. `ta_lint/data/libraries.toml` lists them.

The first question of all, of every file there is: so imports are looked for in its bytes, and the two expressions begin with
letters, for which Python searches fastest.
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
    """The same of a file with code in it, such as a notebook: where one statement ends and another begins is not looked at."""
    return _mentions(data) or next(_imports(data), None) is not None


@cache
def libraries() -> dict[str, Enough]:
    """The libraries, each with what of it makes a file ours.

    Raises:
        DataError: the table has a value with no meaning.
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
    """Where a file may import one of them, prose and strings included."""
    names = _names("imported")
    for match in _FROM.finditer(data):
        if match[1] in names:
            yield match.start()
    for match in _IMPORT.finditer(data):
        if any(_first_word(item) in names for item in match[1].split(b",")):
            yield match.start()


def _first_word(item: bytes) -> bytes:
    """Of `transformers.utils as utils` the library."""
    return item.split(b" as ")[0].partition(b".")[0].strip()


def _begins_statement(data: bytes, start: int) -> bool:
    line = data[data.rfind(b"\n", 0, start) + 1 : start].strip(b" \t\f")
    return not line or line.endswith(_BEFORE_A_STATEMENT)
