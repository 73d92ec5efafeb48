"""What linting or fixing came to."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.runner import Result


class Outcome(NamedTuple):
    """The findings in the files as they are now, and what was fixed."""

    findings: "list[Finding]"
    given: bytes | None = None
    """What came on standard input, fixed where that was asked for."""
    fixed: int = 0
    """How many findings were fixed."""
    fixed_files: int = 0
    """How many files were changed by that."""
    unwritten: bool = False
    """Whether a file could not be written."""


def in_order(results: "Iterable[Result]") -> "list[Finding]":
    """The findings of files, in order of place."""
    findings = [finding for _, of_file in results for finding in of_file]
    return sorted(
        findings,
        key=lambda finding: (
            finding.site.path,
            finding.site.cell.number if finding.site.cell is not None else 0,
            finding.site.line,
            finding.site.column,
            finding.rule,
        ),
    )
