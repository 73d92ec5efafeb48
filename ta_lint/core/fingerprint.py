"""Identifies a finding across edits: the same for linter and run, and independent of line numbers."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ta_lint.core.finding import Finding, Related
from ta_lint.core.source import Source

if TYPE_CHECKING:
    from ta_lint.core.statements import Statement


def named(
    findings: Iterable[Finding], source: Source, sources: Callable[[str], Source | None] = lambda path: None
) -> list[Finding]:
    """The findings of one file in order of place, with enclosing names and fingerprints filled in.

    A fingerprint is 16 hexadecimal digits of a hash over rule, path, normalised statement and enclosing
    qualified name, then `:n` for the n-th finding with the same hash in the file. It contains no line number, so
    neither an edit elsewhere in the file nor a formatter changes it. `sources` gives the other files in which related places
    are, None for one that is not at hand.
    """
    ordered = sorted(findings, key=lambda finding: (finding.site.line, finding.site.column, finding.rule))
    seen: Counter[str] = Counter()
    result = []
    for finding in ordered:
        statement = source.statement_at(finding.site.line)
        digest = _digest(finding.rule, finding.site.path, statement)
        seen[digest] += 1
        site = replace(finding.site, name=finding.site.name or statement.scope)
        related = tuple(_related(other, finding, source, sources) for other in finding.related)
        result.append(replace(finding, site=site, related=related, fingerprint=f"{digest}:{seen[digest]}"))
    return result


def _related(
    other: Related, finding: Finding, source: Source, sources: Callable[[str], Source | None]
) -> Related:
    """The related place with its fingerprint, if its file is at hand."""
    of_other = source if other.site.path == finding.site.path else sources(other.site.path)
    if of_other is None:
        return other
    statement = of_other.statement_at(other.site.line)
    return replace(other, fingerprint=_digest(finding.rule, other.site.path, statement))


def _digest(rule: str, path: str, statement: "Statement") -> str:
    parts = (rule, path, statement.text, statement.scope)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
