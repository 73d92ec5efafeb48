"""`ta-lint rules`: lists the rules."""

import argparse

from ta_lint.commands import CLEAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Print the list; return the exit status."""
    from ta_lint.core.catalogue import catalogue

    rules = catalogue().values()
    if arguments.format == "json":
        import json

        fields = (
            "id",
            "name",
            "severity",
            "observers",
            "default",
            "precision",
            "fix",
            "tags",
            "since",
            "also",
            "summary",
            "url",
        )
        print(json.dumps([{field: getattr(rule, field) for field in fields} for rule in rules], indent=2))
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
