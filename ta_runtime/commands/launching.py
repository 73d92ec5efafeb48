"""What `run` and `collect` have in common: the program that they run, and numbers of steps."""

import argparse
from collections.abc import Callable

from ta_runtime.commands.program import Module, Script


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add what names the program, with its own arguments."""
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS ...]", help="the script and its arguments"
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE [ARGS ...]",
                        help="run a module instead, as `python -m` does")  # fmt: skip


def words(arguments: argparse.Namespace) -> list[str]:
    """The name of the program and its arguments; empty if none is named."""
    named: list[str] = arguments.module if arguments.module is not None else arguments.script
    return named


def program(arguments: argparse.Namespace) -> Module | Script:
    """The program that is named.

    Raises:
        UsageError: there is no such script or module.
    """
    kind = Script if arguments.module is None else Module
    return kind(words(arguments))


def steps(least: int) -> Callable[[str], int]:
    """The type of an option that is a number of steps."""

    def number(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps, {least} or more")
        return int(text)

    return number
