"""Where things happen: a line of the user's code."""

from typing import Final, NamedTuple


class Place(NamedTuple):
    """A line of a file, and, where it is known, the exact expression.

    A tuple, as tuples are hashed and compared in C: places are the keys of what is noted at every step. Lines count from
    1. `column` and `end_column` are offsets in UTF-8 bytes from 0, as CPython's `co_positions` and `ast` give them, None where
    unknown.
    """

    path: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


NOWHERE: Final = Place("", 1)
"""Where nothing of the user's is on the stack; a report then names the script that runs."""
