"""Lints source that a caller holds in memory, such as flake8 or an editor: see `ta_lint.lint_text`."""

from functools import cache
from pathlib import Path

from ta_lint import runner
from ta_lint.core.config import Configs, Options, project_root
from ta_lint.core.finding import Finding
from ta_lint.core.source import encode
from ta_lint.discovery import discover, named


def lint_text(text: str, path: Path) -> list[Finding]:
    """Implements `ta_lint.lint_text`."""
    cwd = Path.cwd()
    files = named(path, bytes_of_text(text), _configs(cwd), project_root(cwd))
    return [finding for _, findings in runner.lint_files(files, jobs=1) for finding in findings]


def lint_files(paths: list[Path], configs: Configs | None) -> list[Finding]:
    """Implements `ta_lint.lint_files`."""
    cwd = Path.cwd()
    files = discover(paths, configs or _configs(cwd), project_root(cwd))
    linted = {file.name: findings for file, findings in runner.lint_files(files, jobs=1)}
    return [finding for file in files for finding in linted[file.name]]


@cache
def _configs(cwd: Path) -> Configs:
    return Configs(Options(), cwd)


def bytes_of_text(text: str) -> bytes:
    """The text encoded as it declares, if possible, otherwise as UTF-8."""
    plain = text.encode("utf-8", "surrogatepass")
    try:
        return encode(text, like=plain)
    except (SyntaxError, LookupError, UnicodeError):  # the linter then reports it
        return plain
