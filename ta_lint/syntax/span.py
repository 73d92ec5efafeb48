"""A span in a file, as an editor counts: lines and columns from 1, the end exclusive."""

from typing import NamedTuple


class Span(NamedTuple):
    """Columns are in characters, not in bytes."""

    line: int
    column: int
    end_line: int
    end_column: int
