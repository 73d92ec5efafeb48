"""Linting source that a caller has in hand, such as flake8 or an editor: see `ta_lint.lint_text`."""

import os
from functools import cache
from pathlib import Path

from ta_lint.core.config import Configs, Options, project_root
from ta_lint.core.finding import Finding
from ta_lint.core.source import encode
from ta_lint.discovery import name_of
from ta_lint.engine import File
from ta_lint.runner import lint_files


def lint_text(text: str, path: Path) -> list[Finding]:
    """What `ta_lint.lint_text` promises."""
    cwd = Path.cwd()
    path = Path(os.path.abspath(path))  # noqa: PTH100 - keeps symbolic links as they are named
    config = _configs(cwd).of_directory(path.parent)
    file = File(path, name_of(path, project_root(cwd)), config, given=_bytes(text))
    [(_, findings)] = lint_files([file], jobs=1)
    return findings


@cache
def _configs(cwd: Path) -> Configs:
    return Configs(Options(), cwd)


def _bytes(text: str) -> bytes:
    """The file that holds this text: in the encoding that it declares, where that can be."""
    plain = text.encode("utf-8", "surrogatepass")
    try:
        return encode(text, like=plain)
    except (SyntaxError, UnicodeEncodeError):  # which is then a finding
        return plain
