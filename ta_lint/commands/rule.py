"""`ta-lint rule`: the page of a rule."""

import argparse
import sys

from ta_lint.commands import CLEAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="ID|NAME", help="TA600, missing-zero-grad or another tool's id")


def run(arguments: argparse.Namespace) -> int:
    """Print the page; return the exit status."""
    from ta_lint.core.catalogue import find

    page = "\n".join(rule.page for rule in find(arguments.rule))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        print(page, end="")
    return CLEAN
