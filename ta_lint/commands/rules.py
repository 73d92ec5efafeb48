"""`ta-lint rules`: lists the rules."""

import argparse

from ta_lint.commands import CLEAN

TYPE_CHECKING = False  # `--help` needs no `typing`
if TYPE_CHECKING:
    from ta_lint.core.catalogue import Rule

_FIELDS = "id name severity observers default precision fix tags since also summary url".split()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", "--output-format", choices=("text", "json"), default="text", help="(default: text)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list; return the exit status."""
    from ta_lint.core.catalogue import catalogue

    rules = catalogue().values()
    if arguments.format == "json":
        import json

        print(json.dumps(list(map(fields, rules)), indent=2))
        return CLEAN
    for rule in rules:
        state = "on" if rule.default else "opt-in"
        seen = "+".join(rule.observers)
        fix = f"{rule.fix} fix" if rule.fix != "none" else ""
        print(
            f"{rule.id}  {rule.name:<38} {rule.severity.value:<8} {state:<7} {seen:<15} {fix:<11} "
            f"{', '.join(rule.tags)}"
        )
    return CLEAN


def fields(rule: "Rule") -> dict[str, object]:
    """What JSON says of a rule."""
    return {field: getattr(rule, field) for field in _FIELDS}
