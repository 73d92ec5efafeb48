"""The files of a run: those below the given paths, or standard input."""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from ta_lint.commands.check.settings import Settings
from ta_lint.commands.messages import warn
from ta_lint.core.config import Config
from ta_lint.core.errors import UsageError
from ta_lint.core.files import STDIN, display
from ta_lint.core.terminal import harmless
from ta_lint.discovery import discover, may_be_python, named
from ta_lint.file import File


class Chosen(NamedTuple):
    """The files to lint; `given` is the content of standard input if it replaces files on disk."""

    files: list[File]
    given: bytes | None


def choose(arguments: argparse.Namespace, settings: Settings) -> Chosen:
    """The files that the command line selects.

    Raises:
        UsageError: a path does not exist, or standard input is unavailable.
    """
    given = _standard_input(arguments)
    if given is not None:
        name = arguments.stdin_filename or STDIN
        files = named(name, given, settings.configs, settings.root)
    else:
        files = discover(arguments.paths or [Path()], settings.configs, settings.root)
        for path in arguments.paths:
            if not (may_be_python(path) or path.is_dir()):
                warn(f"{path}: not read, as it is no Python file and no notebook")
    if arguments.no_gates:
        files = [file._replace(gated=False) for file in files]
    if not files and given is None:
        warn_of_no_files()
    return Chosen(files, given)


def show(chosen: Chosen) -> None:
    """Print the files, one a line."""
    for file in chosen.files:
        print(harmless(display(file.path)))


def warn_of_idle_ignores(arguments: argparse.Namespace, chosen: Chosen) -> None:
    """Warn about patterns of `per-file-ignores` that match no file, if the run has all files that they are about."""
    by_settings: dict[Config, list[File]] = {}
    for file in chosen.files:
        if file.config.per_file_ignores:
            by_settings.setdefault(file.config, []).append(file)
    tops = [path.absolute() for path in arguments.paths or [Path()] if path.is_dir()]
    for config, files in by_settings.items():
        if any(Path(config.directory).is_relative_to(top) for top in tops):
            for pattern in config.idle_ignores(file.path for file in files):
                warn(f"{config.source}: per-file-ignores: {pattern!r} matches no file")


def warn_of_no_files() -> None:
    warn("no Python files to lint under the given paths")


def _standard_input(arguments: argparse.Namespace) -> bytes | None:
    """The content of standard input if `-` is given, otherwise None."""
    if not any(path is STDIN for path in arguments.paths):
        if arguments.stdin_filename is not None:
            raise UsageError("--stdin-filename: is for standard input; give - as the path")
        return None
    if len(arguments.paths) > 1:
        raise UsageError("-: standard input cannot be combined with other paths")
    if arguments.stdin_filename is not None and arguments.stdin_filename.is_dir():
        raise UsageError(f"--stdin-filename: {arguments.stdin_filename} is a folder; give the name of a file")
    if sys.stdin is None:
        raise UsageError("-: standard input is closed")
    return sys.stdin.buffer.read()
