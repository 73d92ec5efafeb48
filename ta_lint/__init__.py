"""A linter for PyTorch training code; `ta_lint.cli` is the command, `lint_text` and `lint_files` are the library API."""

TYPE_CHECKING = False  # printing the help needs neither `typing` nor `pathlib`
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ta_lint.core.config import Configs
    from ta_lint.core.finding import Finding

__version__ = "0.2.0"

__all__ = ["__version__", "lint_files", "lint_text"]


def lint_text(text: str, path: "str | Path") -> "list[Finding]":
    """The findings in Python source, in order of place, with suppressed ones marked.

    `path` is the actual or assumed file of the source: the nearest `[tool.ta]` above it gives the settings, and with
    `force-exclude` it decides whether the source is linted at all. The file need not exist and is not read. Settings are
    read once per process.

    Raises:
        ta_lint.core.errors.UsageError: the settings are wrong.
    """
    from pathlib import Path

    from ta_lint import texts

    return texts.lint_text(text, Path(path))


def lint_files(paths: "Iterable[Path]", configs: "Configs | None" = None) -> "list[Finding]":
    """The findings in files, in order of file and place, with suppressed ones marked.

    `configs` are the settings, by default those of the nearest `[tool.ta]` above each file.

    Raises:
        ta_lint.core.errors.UsageError: the settings are wrong, or a file does not exist.
    """
    from ta_lint import texts

    return texts.lint_files(list(paths), configs)
