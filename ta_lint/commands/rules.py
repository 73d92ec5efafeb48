"""`ta-lint rules`: lists the rules."""

import argparse

from ta_lint.commands import CLEAN
from ta_lint.core.arguments import Parser

TYPE_CHECKING = False  # `--help` needs no `typing`
if TYPE_CHECKING:
    from ta_lint.core.catalogue import Rule

_EXAMPLES = """\
examples:
  ta-lint rules                  all rules
  ta-lint rules TA6 security     those with these prefixes, names, tags, or ids of another linter
  ta-lint rules TA6 -f json      all that is known of them, for a program

Each line has id, name, severity, whether the rule is on by default, and what it finds.
`ta-lint rule TA600` explains a rule.
"""

_FIELDS = "id name severity observers default precision fix tags since tests also summary url".split()


def add_arguments(parser: Parser) -> None:
    parser.works_alone = True
    parser.usage = "ta-lint rules [options] [RULES ...]"
    parser.description = "Lists the rules, or those that are selected, with what each finds."
    parser.epilog = _EXAMPLES
    parser.add_argument("rules", nargs="*", metavar="RULES",
                        help="an id (TA600), a prefix (TA6), a name (missing-zero-grad), a tag (loop), or another tool's id (TOR102)")  # fmt: skip
    parser.add_argument(
        "--format", "--output-format", "-f", choices=("text", "json"), default="text", help="(default: text)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list; return the exit status."""
    from ta_lint.core.catalogue import catalogue, check_selector, chosen
    from ta_lint.core.report import listed

    selectors = [part for word in arguments.rules for part in word.replace(",", " ").split()]
    for selector in selectors:
        check_selector(selector, "rules")
    ids = chosen(selectors, []) if selectors else catalogue().keys()
    rules = [rule for rule in catalogue().values() if rule.id in ids]
    if arguments.format == "json":
        import json

        print(json.dumps(list(map(fields, rules)), indent=2))
        return CLEAN
    print(listed(rules), end="")
    return CLEAN


def fields(rule: "Rule") -> dict[str, object]:
    """What JSON says of a rule."""
    return {field: getattr(rule, field) for field in _FIELDS}
