"""The cells of a notebook that runs: named as its user sees them, `In [3]`, where IPython gives their code names of its own."""

import linecache
import re
import sys
from pathlib import Path

from ta_lint.core.files import display

_NAMED = re.compile(r"In ?\[(\d+)\]")
_files: dict[str, str] = {}  # of each cell that was named, what IPython calls its code


def named(filename: str) -> str | None:
    """The name of the cell whose code has this file name; None for what is no cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    describe = getattr(getattr(shell, "compile", None), "format_code_name", None)
    told = describe(filename) if describe is not None and filename else None
    if not told or (number := _NAMED.search(str(told[-1]))) is None:
        return None
    name = f"In [{number[1]}]"
    _files[name] = filename
    return name


def source(name: str) -> str | None:
    """The text of a cell that was named."""
    return "".join(linecache.getlines(_files[name])) if name in _files else None


def shown(path: str, root: Path) -> str:
    """The path of a finding as people read it, who know a cell by its name."""
    return path if path in _files else display(root / path)
