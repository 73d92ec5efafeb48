"""Draws what a program is made of, and keeps its lines in order."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

Lines = list[str]


@cache
def _numbers(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


class Writer:
    """A program while it is written: definitions go above the lines that use them."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw
        self._names = 0
        self.definitions: Lines = []
        """Functions and classes that the lines being written need."""

    def number(self, most: int) -> int:
        """A number from 0 on; it shrinks to 0."""
        return self._draw(_numbers(most))  # type: ignore[no-any-return]

    def pick(self, *choices: Any) -> Any:
        """One of these; it shrinks to the first."""
        return choices[self.number(len(choices) - 1)]

    def sometimes(self, one_in: int = 2) -> bool:
        """Seldom true; it shrinks to false."""
        return self.number(one_in - 1) == one_in - 1

    def fresh(self, stem: str) -> str:
        """A name that nothing has yet."""
        self._names += 1
        return f"{stem}{self._names}"

    def define(self, *lines: str) -> None:
        """A function or class that the program needs."""
        self.definitions += lines


def indented(lines: Lines) -> Lines:
    """The lines one level deeper."""
    return [f"    {line}" for line in lines] or ["    pass"]


def renamed(lines: Lines, names: dict[str, str]) -> Lines:
    """The lines with other names in them."""
    pattern = re.compile(rf"(?<![\w.'\"])({'|'.join(map(re.escape, names))})\b") if names else None
    return [pattern.sub(lambda found: names[found[1]], line) for line in lines] if pattern else lines
