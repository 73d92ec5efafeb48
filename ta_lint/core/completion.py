"""The script by which a shell completes a command line, made by shtab of the parser."""

import argparse
from collections.abc import Collection, Iterator

from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import UsageError

_OF_RULES = ("rule", "rules", "select", "extend_select", "ignore")  # arguments that name rules


def script(parser: argparse.ArgumentParser, shell: str, of_files: Collection[object]) -> str:
    """The script for one of `arguments.SHELLS`, to be evaluated or kept where the shell looks for such.

    `of_files` are the types of the arguments that name files.

    Raises:
        UsageError: shtab is not installed.
    """
    try:
        import shtab
    except ModuleNotFoundError as error:
        if error.name != "shtab":
            raise
        remedy = "pip install 'ta-lint[completion]'"
        raise UsageError(f"--print-completion needs shtab: {remedy}") from error
    for action in _actions(parser):
        if action.type in of_files:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in _OF_RULES and action.nargs != 0:
            action.choices = list(catalogue())
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
