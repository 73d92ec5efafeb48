"""The outcome of linting or fixing."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ta_lint.core.finding import Finding
    from ta_lint.runner import Result


class Outcome(NamedTuple):
    """The findings in the current files, and what was fixed."""

    findings: "list[Finding]"
    given: bytes | None = None
    """The content of standard input, after its fixes if `--fix` is given."""
    fixed: int = 0
    """The number of fixed findings."""
    fixes: "Mapping[str, tuple[str, ...]]" = MappingProxyType({})
    """What was fixed in each file that fixes changed: the rule of each fix, and none for a comment."""
    unwritten: bool = False
    """Whether a file could not be written."""
    looked: bool = True
    """Whether any rule was looked for: not if no file is about PyTorch."""


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
