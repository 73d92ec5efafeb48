"""The name of a finding across edits: equal for both observers, unmoved by lines above it."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ta_lint.core.finding import Finding
from ta_lint.core.source import Source


def named(findings: Iterable[Finding], source: Source) -> list[Finding]:
    """The findings of one file in order of place, each with its enclosing name and its fingerprint.

    A fingerprint is 16 hexadecimal digits of a hash over rule, path, normalised statement and enclosing
    qualified name, then `:n` for the n-th finding with the same hash in the file. It holds no line number, so an
    edit elsewhere in the file, or a formatter, leaves it alone.
    """
    ordered = sorted(findings, key=lambda finding: (finding.site.line, finding.site.column, finding.rule))
    seen: Counter[str] = Counter()
    result = []
    for finding in ordered:
        statement = source.statement_at(finding.site.line)
        parts = (finding.rule, finding.site.path, statement.text, statement.scope)
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        seen[digest] += 1
        site = replace(finding.site, name=finding.site.name or statement.scope)
        result.append(replace(finding, site=site, fingerprint=f"{digest}:{seen[digest]}"))
    return result
