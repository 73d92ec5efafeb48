"""`--diff`: prints what fixes would change, without writing it."""

import argparse
import sys

from ta_lint.commands import CLEAN, FINDINGS
from ta_lint.commands.check.baseline import marked
from ta_lint.commands.messages import warn
from ta_lint.core import report
from ta_lint.core.baseline import Entry
from ta_lint.core.files import display, write_atomically
from ta_lint.core.finding import Finding
from ta_lint.core.terminal import wants_color
from ta_lint.fixing import Fixed

_NOT_LOOKED_AT = ("TA000", "TA001")  # the file, or one rule in it, was not checked, so fixes may be missing


def show(arguments: argparse.Namespace, fixed: list[Fixed], accepted: list[Entry]) -> int:
    """Print the changes, readable on a terminal and otherwise as bytes for `patch`; return the exit status."""
    left, _ = marked([finding for result in fixed for finding in _left(result)], accepted)
    for finding in left:
        if finding.rule in _NOT_LOOKED_AT:
            warn(f"{finding.site.path}:{finding.site.position}: {finding.message}")
    changed = sorted((result for result in fixed if result.changes), key=lambda result: result.file.name)
    changes = b"".join(
        report.diff(result.before, result.after, display(result.file.path)) for result in changed
    )
    if arguments.output is not None:
        write_atomically(arguments.output, changes)
    elif sys.stdout.isatty():
        sys.stdout.write(report.readable(changes, color=wants_color(sys.stdout)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(changes)
    if not arguments.quiet:
        would = report.fixed(sum(result.count for result in changed), len(changed))
        would_have = f"Would have {would[0].lower()}{would[1:]}" if would else ""
        print(f"{would_have}{report.remedies(left, report.never)}", end="", file=sys.stderr)
    return FINDINGS if changed and not arguments.exit_zero else CLEAN


def _left(result: Fixed) -> list[Finding]:
    """The findings of a fixed file without a fix, or with one that the settings do not allow."""
    makes = result.file.config.makes
    return [finding for finding in result.findings if finding.fix is None or not makes(finding.fix)]
