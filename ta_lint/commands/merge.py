"""`ta-lint merge`: logs of the linter and of runs, joined."""

import argparse
import sys
from typing import TYPE_CHECKING

from ta_lint.commands import CLEAN, FINDINGS, STDIN

if TYPE_CHECKING:
    from ta_lint.merging import Merged


def run(arguments: argparse.Namespace) -> int:
    """Join the logs and report; returns the exit status."""
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import write_atomically
    from ta_lint.core.finding import Severity
    from ta_lint.merging import merged

    if any(path is STDIN for path in arguments.logs):
        raise UsageError("-: name the files of the logs; standard input is not read")
    result = merged(arguments.logs)
    if arguments.output is not None:
        write_atomically(arguments.output, result.sarif)
    if not (arguments.quiet and arguments.output is not None):
        sys.stdout.write(_merged_report(arguments.format, result))
    level = Severity(arguments.fail_level).rank
    failing = any(finding.counts and finding.severity.rank >= level for finding in result.findings)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN


def _merged_report(form: str, result: "Merged") -> str:
    from ta_lint.core import report
    from ta_lint.core.catalogue import catalogue
    from ta_lint.core.terminal import wants_color

    color = wants_color(sys.stdout)
    if form == "sarif":
        return result.sarif
    if form == "table":
        return result.table(color=color)
    if form == "json":
        from ta_lint.core.json_report import as_json

        return as_json(result.findings, catalogue())
    if form == "github":
        return report.github(result.findings, catalogue())
    if form == "concise":
        return report.concise(result.findings, display=str, color=color)
    return report.text(
        result.findings, read_lines=lambda path, cell: [], display=str, color=color
    ) + report.summary(result.findings)
