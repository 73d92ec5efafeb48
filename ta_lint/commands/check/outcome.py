"""The outcome of linting or fixing."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.runner import Result


class Outcome(NamedTuple):
    """The findings in the current files, and what was fixed."""

    findings: "list[Finding]"
    given: bytes | None = None
    """The content of standard input, after its fixes if `--fix` is given."""
    fixed: int = 0
    """The number of fixed findings."""
    fixed_files: int = 0
    """The number of files changed by fixes."""
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
