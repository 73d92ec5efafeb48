"""A linter for PyTorch training code; `ta_lint.cli` is the command, `lint_text` the library entry."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding

__version__ = "0.1.0"

__all__ = ["__version__", "lint_text"]


def lint_text(text: str, path: str | Path) -> "list[Finding]":
    """The findings of Python source, in order of place, suppressed ones marked.

    `path` is where it stands or would stand: the nearest `[tool.ta]` above it decides what is looked for, and with
    `force-exclude` whether anything is. Nothing need be there, and what is there is not read. Settings are read once in
    a process.

    Raises:
        ta_lint.core.errors.UsageError: the settings are wrong.
    """
    from ta_lint import texts

    return texts.lint_text(text, Path(path))
