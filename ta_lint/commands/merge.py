"""`ta-lint merge`: joins logs of the linter and of runs."""

import argparse
import sys
from typing import TYPE_CHECKING

from ta_lint.commands import CLEAN, FINDINGS
from ta_lint.core.arguments import Parser, file, path

if TYPE_CHECKING:
    from ta_lint.core.terms import Severity
    from ta_lint.merging import Merged

_ABOUT = """\
Joins the SARIF of the linter with that of runs. Each finding of the linter becomes
confirmed, refuted or unobserved, with the measured numbers. Findings of runs alone
are kept. A refuted finding is suppressed, with the numbers as its justification.
You may edit files in between, because places match by fingerprint, not by line. One
run or rank that confirms outweighs all that refute.
"""

_EXAMPLES = """\
examples:
  ta-lint merge lint.sarif run.sarif -o ta.sarif      one log for code scanning
  ta-lint merge lint.sarif nightly/*.sarif            the verdicts of many runs as a table
  ta-lint merge ta.sarif new-run.sarif -o ta.sarif    merge again with a new run

exit status: 0 clean, 1 findings at or above --fail-level that no run refutes,
             2 wrong usage, or a file that cannot be read or written
"""


_FORMATS = ("table", "text", "concise", "json", "sarif", "github", "gitlab", "azure", "junit")


def add_arguments(parser: Parser) -> None:
    parser.usage = "ta-lint merge [options] SARIF [SARIF ...]"
    parser.description, parser.epilog = _ABOUT, _EXAMPLES
    parser.add_argument(
        "logs", nargs="+", type=path, metavar="SARIF", help="logs of ta-lint and ta-runtime, in any order"
    )
    parser.add_argument("--output", "-o", type=file, metavar="FILE", help="write the merged log, as SARIF")
    parser.add_argument("--format", "-f", choices=_FORMATS, metavar="FORMAT", default="table",
                        help=f"{', '.join(_FORMATS)} on standard output (default: table)")  # fmt: skip
    parser.add_argument("--quiet", "-q", action="store_true", help="print nothing if --output is given")
    parser.add_argument("--fail-level", choices=("note", "warning", "error"), default="warning",
                        help="lowest severity that makes the exit status 1 (default: warning)")  # fmt: skip
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")


def run(arguments: argparse.Namespace) -> int:
    """Join the logs and report; return the exit status."""
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import STDIN, write_atomically
    from ta_lint.core.finding import Severity
    from ta_lint.merging import merged

    if any(path is STDIN for path in arguments.logs):
        raise UsageError("-: name the files of the logs; standard input is not read")
    result = merged(arguments.logs)
    if arguments.output is not None:
        write_atomically(arguments.output, result.sarif)
    if not (arguments.quiet and arguments.output is not None):
        sys.stdout.write(_merged_report(arguments.format, result, Severity(arguments.fail_level)))
    level = Severity(arguments.fail_level).rank
    failing = any(finding.counts and finding.severity.rank >= level for finding in result.findings)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN


def _merged_report(form: str, result: "Merged", fail_level: "Severity") -> str:
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
    if form != "text":
        from ta_lint.core import ci

        return ci.rendered(form, result.findings, catalogue(), fail_level)
    return report.text(
        result.findings, read_lines=lambda path, cell: [], display=str, color=color
    ) + report.summary(result.findings)
