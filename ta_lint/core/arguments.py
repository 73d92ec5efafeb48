"""Parses command lines: a mistake ends the process with status 2 and suggests what was meant."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from ta_lint.core.errors import UsageError, hint

TYPE_CHECKING = False  # `--help` needs neither `typing` nor `pathlib`
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

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
    """A parser of all our commands: its help keeps its lines, an error is one line, and a wrong choice gets a suggestion.

    A command without arguments prints its help, unless it `works_alone`.
    """

    works_alone = False

    def __init__(self, *arguments: "Any", **named: "Any") -> None:
        named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **named)

    def knows(self, word: str) -> bool:
        """Whether a word that begins with `--` is an option, or the beginning of one."""
        option = word.partition("=")[0]
        return any(known.startswith(option) for known in self._option_string_actions)

    def before_others(self, words: Sequence[str]) -> Sequence[str]:
        """The words among which each option is this parser's: none if some may be a script's."""
        if any(action.nargs == argparse.REMAINDER for action in self._actions):
            return ()
        return words[: words.index("--")] if "--" in words else words

    def error(self, message: str) -> "NoReturn":
        """End with one line; the usage of a command with thirty options would hide it."""
        from ta_lint.core.terminal import harmless

        self.exit(2, f"{self.prog}: error: {harmless(message)} (see `{self.prog} --help`)\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += hint(str(value), action.choices or ())
            raise


def parsed(
    commands: Callable[[Sequence[str]], tuple[Parser, Mapping[str, Parser]]],
    words: Sequence[str],
    *,
    with_path: str,
    elsewhere: Mapping[str, str],
) -> argparse.Namespace:
    """Parse a command line.

    `commands` makes the parser, and those of its commands, for these words. `with_path` is the error for a path given as
    command, with `{}` for the path. `elsewhere` has the command line that does what other words for a command mean.

    Raises:
        SystemExit: the words are wrong, or only ask for help, which is then printed.
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    parser, known = commands(words)
    first = words[0] if words else ""
    command = known.get(first, parser)
    if len(words) == (command is not parser) and not command.works_alone:
        command.print_help(sys.stderr)
        parser.exit(2)
    if command is parser and not first.startswith("-"):
        if first in elsewhere:
            parser.error(
                f"no command is called {first!r}; write `{' '.join([elsewhere[first], *words[1:]])}`"
            )
        if first.endswith(_SUFFIXES) or os.path.exists(first):  # noqa: PTH110 - keeps pathlib out of `--help`
            parser.error(with_path.format(first))
        near = hint(first, known) or f"; the commands are {', '.join(known)}"
        parser.error(f"no command is called {first!r}{near}")
    own = words[:1] if command is parser else command.before_others(words[1:])
    unknown = [word for word in own if word.startswith("--") and not command.knows(word)]
    if not unknown:
        arguments, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse(command, commands(list(known))[1], unknown)
    return arguments


def _refuse(parser: Parser, commands: Mapping[str, Parser], unknown: Sequence[str]) -> "NoReturn":
    """End with an error about words that a parser does not know."""
    option = unknown[0].partition("=")[0]
    near = hint(option, parser._option_string_actions, beside="--")
    if not near and option.startswith("-"):
        having = [f"`{each.prog}`" for each in commands.values() if option in each._option_string_actions]
        near = f"; it is an option of {' and '.join(having)}" if having else ""
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{near}")


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
