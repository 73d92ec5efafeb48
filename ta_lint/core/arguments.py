"""Command lines: what is wrong in one ends the process with status 2, after a hint at what may be meant."""

import argparse
import os
from collections.abc import Mapping, Sequence

from ta_lint.core.errors import hint

TYPE_CHECKING = False  # `--help` needs neither `typing` nor `pathlib`
if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = (".py", ".ipynb")


def parsed(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, argparse.ArgumentParser],
    words: Sequence[str],
    with_path: str,
) -> argparse.Namespace:
    """The words of a command line; `with_path` says how a path is given, with `{}` for it.

    Raises:
        SystemExit: the words are none of these commands, or ask for nothing but help, which is then printed.
    """
    first = words[0] if words else "-"
    if not first.startswith("-") and first not in commands:
        if first.endswith(_SUFFIXES) or os.path.exists(first):  # noqa: PTH110 - spares `--help` of pathlib
            parser.error(with_path.format(first))
        near = hint(first, commands) or f"; the commands are {', '.join(commands)}"
        parser.error(f"no command is called {first!r}{near}")
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        command = commands.get(first, parser)
        near = hint(unknown[0].partition("=")[0], command._option_string_actions)
        command.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return arguments


def path(text: str) -> "Path":
    """A path, where `-` is standard input."""
    if text == "-":
        from ta_lint.core.files import STDIN

        return STDIN
    if not text:  # an empty variable of a script: the whole folder is not what it meant
        raise argparse.ArgumentTypeError("the path is empty")
    return file(text)


def file(text: str) -> "Path":
    """The name of a file, where `-` is a name like others."""
    from pathlib import Path

    return Path(text)
