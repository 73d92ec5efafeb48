"""Which files a command line means."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from ta_lint.core.config import Config, Configs, is_pattern
from ta_lint.core.errors import UsageError
from ta_lint.core.source import NOTEBOOK
from ta_lint.engine import File

_SUFFIXES = (".py", ".pyi", NOTEBOOK)


def discover(paths: list[Path], configs: Configs, root: Path) -> list[File]:
    """The files to lint, sorted by name, each once.

    A file given by name is linted whatever `exclude` and `.gitignore` say; so is a folder given by name, though not
    what they exclude inside it. With `force-exclude`, `exclude` holds for both.

    Raises:
        UsageError: a path does not exist.
    """
    found: dict[Path, File] = {}
    for given in paths:
        path = Path(os.path.abspath(given))  # noqa: PTH100 - keeps symbolic links as they are named
        if path.is_dir():
            files: Iterator[Path] | list[Path] = _walk(path, configs, root)
        elif path.exists() or path.is_symlink():
            files = [] if _is_excluded(path, configs) else [path]
        else:
            raise UsageError(f"{given}: no such file or folder")
        for file in files:
            found.setdefault(file, File(file, name_of(file, root), configs.of_directory(file.parent)))
    return sorted(found.values(), key=lambda file: file.name)


def named(name: Path, data: bytes, configs: Configs, root: Path) -> list[File]:
    """The file that holds these bytes, as if it stood under that name; none if `force-exclude` leaves it out."""
    path = Path(os.path.abspath(name))  # noqa: PTH100 - as above
    if _is_excluded(path, configs):
        return []
    return [File(path, name_of(path, root), configs.of_directory(path.parent), data)]


def name_of(path: Path, root: Path) -> str:
    """A path as findings name it: relative to the root where it lies below it, absolute elsewhere."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _is_excluded(path: Path, configs: Configs) -> bool:
    config = configs.of_directory(path.parent)
    return config.force_exclude and _matches(config.excluded, path, config.directory)


def _matches(spec: GitIgnoreSpec, path: Path, base: Path, folder: bool = False) -> bool:
    if not path.is_relative_to(base):
        base = Path(path.anchor)
    return spec.match_file(path.relative_to(base).as_posix() + ("/" if folder else ""))


def _walk(top: Path, configs: Configs, root: Path) -> Iterator[Path]:
    """The Python files below a folder, less what is excluded, and folders that cannot be listed.

    Links to folders are not followed.
    """
    config = configs.of_directory(top)
    excluded_itself = _matches(config.excluded, top, config.directory, folder=True)
    if excluded_itself and config.force_exclude:
        return
    ignores = _ignores_above(top, root) if config.respect_gitignore else []
    pending = [(top, ignores)]
    while pending:
        folder, above = pending.pop()
        config = configs.of_directory(folder)
        ignores = [*above, *_ignore_file(folder)] if config.respect_gitignore else []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield folder  # reading it says why nothing in it is checked
            continue
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and path.suffix not in _SUFFIXES:
                continue
            if _skipped(path, config, top if excluded_itself else config.directory, ignores, is_folder):
                continue
            if is_folder:
                pending.append((path, ignores))
            elif not path.is_dir():  # a link to a folder named like a module
                yield path


def _skipped(
    path: Path, config: Config, base: Path, ignores: list[tuple[Path, GitIgnoreSpec]], folder: bool
) -> bool:
    if _matches(config.excluded, path, base, folder):
        return True
    for directory, spec in reversed(ignores):  # the nearest .gitignore that says anything decides
        verdict = spec.check_file(path.relative_to(directory).as_posix() + ("/" if folder else "")).include
        if verdict is not None:
            return verdict
    return False


def _ignores_above(top: Path, root: Path) -> list[tuple[Path, GitIgnoreSpec]]:
    """The `.gitignore` files from the root down to the folder above `top`, less those that ignore `top` itself."""
    folders = [folder for folder in reversed(top.parents) if folder.is_relative_to(root)]
    ignores = [ignore for folder in folders for ignore in _ignore_file(folder)]
    return [(folder, spec) for folder, spec in ignores if not _matches(spec, top, folder, folder=True)]


def _ignore_file(folder: Path) -> list[tuple[Path, GitIgnoreSpec]]:
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = text.splitlines()
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # git passes over a line that is no pattern
        spec = GitIgnoreSpec.from_lines(filter(is_pattern, lines))
    return [(folder, spec)]
