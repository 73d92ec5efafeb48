"""Parses command lines: a mistake ends the process with status 2 and suggests what was meant."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence

from ta_lint.core.errors import UsageError, hint

TYPE_CHECKING = False  # `--help` needs neither `typing` nor `pathlib`
if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = (".py", ".ipynb")


SHELLS = ("bash", "zsh", "fish", "tcsh")


class PrintCompletion(argparse.Action):
    """Prints the script by which a shell completes the command line, and ends; `whole` makes the parser of all commands."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, whole: Callable[[], argparse.ArgumentParser]
    ) -> None:
        about = "print a completion script for bash, zsh, fish or tcsh"
        super().__init__(option_strings, dest, choices=SHELLS, metavar="SHELL", help=about)
        self._whole = whole

    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: object, __: object = None) -> None:
        from ta_lint.core.completion import script

        try:
            print(script(self._whole(), str(shell), (path, file)))
        except UsageError as error:
            parser.error(str(error))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser that says of a wrong choice which one may be meant."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += hint(str(value), action.choices or ())
            raise


def parsed(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, argparse.ArgumentParser],
    words: Sequence[str],
    with_path: str,
) -> argparse.Namespace:
    """Parse a command line; `with_path` is the error for a path given as command, with `{}` for the path.

    Raises:
        SystemExit: the words name no known command, or only ask for help, which is then printed.
    """
    first = words[0] if words else "-"
    if not first.startswith("-") and first not in commands:
        if first.endswith(_SUFFIXES) or os.path.exists(first):  # noqa: PTH110 - keeps pathlib out of `--help`
            parser.error(with_path.format(first))
        near = hint(first, commands) or f"; the commands are {', '.join(commands)}"
        parser.error(f"no command is called {first!r}{near}")
    option = first.partition("=")[0]
    if option.startswith("--") and not any(
        known.startswith(option) for known in parser._option_string_actions
    ):
        near = hint(option, parser._option_string_actions) or f"; name a command first: {', '.join(commands)}"
        parser.error(f"unrecognized arguments: {first}{near}")
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
    if not text:  # probably an unset variable in a script, which did not mean the whole folder
        raise argparse.ArgumentTypeError("the path is empty")
    return file(text)


def file(text: str) -> "Path":
    """The path of a file; `-` has no special meaning here."""
    from pathlib import Path

    return Path(text)
