"""The line ends of Python, and the comment between two cells of a notebook."""

import re
from collections.abc import Iterable

LINE_END = re.compile(r"\r\n|\r|\n")
"""A line end in a Python file, and in a cell of a notebook."""
NEXT_CELL = "# next cell"
"""What that begins with, where the cells are joined."""


def ends_cell(behind: str, following: Iterable[str]) -> bool:
    """Whether a statement is the last of its cell, and a notebook shows its value: by the text behind it on its line, and the lines after that."""
    if behind.lstrip().startswith(";"):
        return False
    code = (
        line for line in map(str.strip, following) if line.startswith(NEXT_CELL) or line[:1] not in ("", "#")
    )
    return next(code, NEXT_CELL).startswith(NEXT_CELL)
