"""Finds the files to lint."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ta_lint.core.config import Config, Configs
from ta_lint.core.dependencies import is_listed_in
from ta_lint.core.errors import Unreadable, UsageError
from ta_lint.core.patterns import Patterns, is_pattern
from ta_lint.core.reading import read
from ta_lint.core.settings import FILES
from ta_lint.file import File, below, name_of

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = (".py", ".pyi", ".ipynb")
_OF_PYTHON = (*SUFFIXES, ".pyw", "")  # a script needs no suffix

_RESOURCES = "._"  # of macOS: `._train.py` holds what the file system of `train.py` cannot
_IGNORE = ".gitignore"
_SETTINGS = frozenset(FILES)


def discover(paths: "Sequence[str | Path]", configs: Configs, root: "str | Path") -> list[File]:
    """The files to lint, sorted by name, each once.

    A file given by name, if that may be one of Python, is linted whatever `exclude` and `.gitignore` say; so is a folder given by name, but not
    what they exclude inside it. With `force-exclude`, `exclude` applies to both.

    Raises:
        UsageError: a path does not exist.
    """
    found: dict[str, File] = {}
    top = os.fspath(root)
    for given in paths:
        path = os.path.abspath(given)  # keeps symbolic links
        if os.path.isdir(path):
            files = _walk(path, configs, top)
        elif _exists(path) and not may_be_python(path):
            continue
        elif _exists(path):
            config = configs.of_directory(os.path.dirname(path))
            files = iter(() if _is_excluded(path, config) else [(path, config)])
        else:
            raise UsageError(f"{given}: no such file or folder")
        for file, config in files:
            if file not in found:
                found[file] = File(file, name_of(file, top), config)
    return sorted(found.values(), key=lambda file: file.name)


def may_be_python(path: "str | Path") -> bool:
    """Whether the name of a file may be that of a Python file or of a notebook."""
    return os.path.splitext(path)[1] in _OF_PYTHON


def named(name: "str | Path", data: bytes, configs: Configs, root: "str | Path") -> list[File]:
    """A file with this name and content, which need not be on disk; empty if `force-exclude` excludes it."""
    path = os.path.abspath(name)
    config = configs.of_directory(os.path.dirname(path))
    return [] if _is_excluded(path, config) else [File(path, name_of(path, os.fspath(root)), config, data)]


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def _is_excluded(path: str, config: Config) -> bool:
    return config.force_exclude and _matches(config.excluded, path, config.directory)


def _matches(spec: Patterns, path: str, base: str) -> bool:
    """Whether the patterns of the folder `base` exclude a path; the path of a folder ends in a separator."""
    return spec.exclude(_seen_from(base, path))


def _seen_from(base: str, path: str) -> str:
    """The path relative to `base`, with forward slashes; relative to its drive's root if it lies elsewhere."""
    seen = below(path, base)
    if seen is None:
        seen = os.path.splitdrive(path)[1].lstrip(os.sep)
    return seen.replace(os.sep, "/")


def _walk(top: str, configs: Configs, root: str) -> Iterator[tuple[str, Config]]:
    """The Python files below a folder that are not excluded, and the folders that cannot be listed, each with its settings.

    Links to folders are not followed.
    """
    config = configs.of_directory(top)
    excluded_itself = _matches(config.excluded, os.path.join(top, ""), config.directory)
    if excluded_itself and config.force_exclude:
        return
    pending = [(top, config, _ignores_above(top, root) if config.respect_gitignore else [])]
    while pending:
        folder, config, ignores = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = {entry.name: entry for entry in listing}
        except OSError:
            above = os.path.dirname(folder)
            yield folder, configs.of_directory(above)  # reading it will report why it cannot be checked
            continue
        # without any of its own, the settings of the folder above apply
        if not _SETTINGS.isdisjoint(entries) or any(map(is_listed_in, entries)):
            config = configs.of_directory(folder)
        if not config.respect_gitignore:
            ignores = []
        elif _IGNORE in entries:
            ignores = [*ignores, *_ignore_file(folder)]
        inside = os.path.join(folder, "")
        excluding = config.excluded, _seen_from(top if excluded_itself else config.directory, inside)
        ignoring = [(spec, _seen_from(place, inside)) for place, spec in reversed(ignores)]
        folders = []
        for name, entry in entries.items():
            if entry.is_dir(follow_symlinks=False):
                if not _skipped(f"{name}/", excluding, ignoring):
                    folders.append(entry.path)
            elif name.endswith(SUFFIXES) and name not in SUFFIXES and not name.startswith(_RESOURCES):
                # a file named `.py` has no suffix
                link_to_folder = entry.is_symlink() and os.path.isdir(entry.path)
                if not link_to_folder and not _skipped(name, excluding, ignoring):
                    yield entry.path, config
        pending += [(path, config, ignores) for path in sorted(folders)]


def _skipped(name: str, excluding: tuple[Patterns, str], ignoring: list[tuple[Patterns, str]]) -> bool:
    """Whether an entry of a folder is skipped; each `Patterns` comes with the folder's path relative to its own."""
    excluded, path = excluding
    if excluded.verdict(path + name):
        return True
    for ignored, path in ignoring:  # the nearest .gitignore with a match decides
        verdict = ignored.verdict(path + name)
        if verdict is not None:
            return verdict
    return False


def _ignores_above(top: str, root: str) -> list[tuple[str, Patterns]]:
    """The `.gitignore` files from the root down to the folder above `top`, except those that ignore `top` itself."""
    folders = [top]
    while below(folders[-1], root) is not None:
        folders.append(os.path.dirname(folders[-1]))
    ignores = [ignore for folder in reversed(folders[1:]) for ignore in _ignore_file(folder)]
    return [(folder, spec) for folder, spec in ignores if not _matches(spec, os.path.join(top, ""), folder)]


def _ignore_file(folder: str) -> list[tuple[str, Patterns]]:
    try:
        text = read(os.path.join(folder, _IGNORE)).decode("utf-8-sig", "replace")
    except Unreadable:
        return []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    try:
        return [(folder, Patterns(lines))]
    except ValueError:  # git ignores lines that are no pattern
        return [(folder, Patterns(filter(is_pattern, lines)))]
