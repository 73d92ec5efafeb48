"""`ta-lint rule`: the page of a rule."""

import argparse
import sys

from ta_lint.commands import CLEAN


def run(arguments: argparse.Namespace) -> int:
    """Print the page; returns the exit status."""
    from ta_lint.core.catalogue import find

    page = "\n".join(rule.page for rule in find(arguments.rule))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        print(page, end="")
    return CLEAN
