"""What an `Auditor` found, as `finish` returns it."""

from dataclasses import dataclass

from ta_lint.core.finding import Finding, Severity


@dataclass(frozen=True)
class Result:
    """What `Auditor.finish` returns."""

    findings: list[Finding]
    """All findings, in order of place, also those that are suppressed or in the baseline."""
    exit_code: int
    """1 if there is a finding at or above `fail_level` that counts, else 0."""
    not_seen: list[str]
    """What the run hid, as the ends of sentences."""

    @property
    def max_severity(self) -> Severity | None:
        """The worst severity among the findings that count, None if there are none."""
        counting = [finding.severity for finding in self.findings if finding.counts]
        return max(counting, key=lambda severity: severity.rank, default=None)
