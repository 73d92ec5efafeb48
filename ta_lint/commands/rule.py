"""`ta-lint rule`: the page of a rule, or of all."""

import argparse
import sys

from ta_lint.commands import CLEAN
from ta_lint.core.arguments import Parser

_ABOUT = "Prints the page of a rule: what goes wrong, bad and good code, and the limits of the rule."

_EXAMPLES = """\
examples:
  ta-lint rule TA600                the rule with this id
  ta-lint rule missing-zero-grad    the rule with this name
  ta-lint rule TOR102               ours for a rule of another linter
  ta-lint rule --all -f json        all pages, for a program

`ta-lint rules` lists all rules.
"""

TYPE_CHECKING = False  # `--help` needs no `typing`
if TYPE_CHECKING:
    from ta_lint.core.catalogue import Rule


def add_arguments(parser: Parser) -> None:
    parser.usage = "ta-lint rule [options] ID|NAME"
    parser.description, parser.epilog = _ABOUT, _EXAMPLES
    parser.add_argument(
        "rule", nargs="?", metavar="ID|NAME", help="TA600, missing-zero-grad or another tool's id"
    )
    parser.add_argument("--all", action="store_true", help="explain every rule")
    parser.add_argument(
        "--format",
        "--output-format",
        "-f",
        choices=("text", "json"),
        default="text",
        help="json is a list of rules, each with its page as `explanation` (default: text)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the page; return the exit status."""
    rules = _named(arguments)
    if arguments.format == "json":
        import json

        from ta_lint.commands.rules import fields

        print(json.dumps([{**fields(rule), "explanation": rule.page} for rule in rules], indent=2))
        return CLEAN
    page = "\n".join(rule.page for rule in rules)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        print(page, end="")
    return CLEAN


def _named(arguments: argparse.Namespace) -> "list[Rule]":
    """The rules to explain.

    Raises:
        UsageError: none is named, no rule has that name, or one is named beside `--all`.
    """
    from ta_lint.core.catalogue import catalogue, find
    from ta_lint.core.errors import UsageError

    if arguments.all == (arguments.rule is not None):
        raise UsageError("rule: give the id or the name of one rule, or --all")
    return list(catalogue().values()) if arguments.all else find(arguments.rule)
