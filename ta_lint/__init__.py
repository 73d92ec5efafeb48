"""A linter for PyTorch training code; `ta_lint.cli` is the command, `lint_text` and `lint_files` the library entries."""

TYPE_CHECKING = False  # neither `typing` nor `pathlib` is needed to print the help
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ta_lint.core.config import Configs
    from ta_lint.core.finding import Finding

__version__ = "0.1.0"

__all__ = ["__version__", "lint_files", "lint_text"]


def lint_text(text: str, path: "str | Path") -> "list[Finding]":
    """The findings of Python source, in order of place, suppressed ones marked.

    `path` is where it stands or would stand: the nearest `[tool.ta]` above it decides what is looked for, and with
    `force-exclude` whether anything is. Nothing need be there, and what is there is not read. Settings are read once in
    a process.

    Raises:
        ta_lint.core.errors.UsageError: the settings are wrong.
    """
    from pathlib import Path

    from ta_lint import texts

    return texts.lint_text(text, Path(path))


def lint_files(paths: "Iterable[Path]", configs: "Configs | None" = None) -> "list[Finding]":
    """The findings of files, in order of file and place, suppressed ones marked.

    `configs` are the settings, by default those of the nearest `[tool.ta]` above each file.

    Raises:
        ta_lint.core.errors.UsageError: the settings are wrong, or a file is not there.
    """
    from ta_lint import texts

    return texts.lint_files(list(paths), configs)
