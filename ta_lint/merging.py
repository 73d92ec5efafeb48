"""Merges the logs of one lint and any number of runs into one, with a verdict on each suspicion."""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ta_lint import __version__
from ta_lint.core import report
from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Finding
from ta_lint.core.logs import Log, read_log
from ta_lint.core.sarif import sarif_log
from ta_lint.core.verdict import joined


@dataclass(frozen=True)
class Merged:
    """The merged content of several logs: one finding for each fingerprint, in order of place."""

    findings: list[Finding]
    inspected: list[Finding]
    notes: list[str]
    compared: bool

    @property
    def sarif(self) -> str:
        """One SARIF log, which replaces the linter's in code scanning, as it has the same category."""
        return sarif_log(
            self.findings,
            catalogue(),
            version=__version__,
            baseline=self.compared,
            notes=self.notes,
            inspected=self.inspected,
        )

    def table(self, *, color: bool) -> str:
        """The verdicts as a table, and a line with the number of each."""
        width = shutil.get_terminal_size().columns if color else 120
        grid = report.verdicts(self.findings, display=os.path.normpath, width=width, color=color)
        return grid + report.judgement(self.findings)


def merged(paths: Sequence[Path]) -> Merged:
    """Merge the logs of ta-lint and ta-runtime in these files, in any order.

    Raises:
        UsageError: as for `core.logs.read_log`.
    """
    logs = [read_log(path) for path in paths]
    findings = joined(
        _distinct(log.suspected for log in logs),
        [finding for log in logs for finding in log.measured],
        [finding for log in logs for finding in log.inspected],
    )
    findings.sort(key=lambda one: (one.site.path, one.site.line, one.site.column, one.rule))
    inspected = {
        (one.rule, one.site.path, one.fingerprint, one.verdict): one for log in logs for one in log.inspected
    }
    return Merged(findings, list(inspected.values()), _notes(logs), any(log.compared for log in logs))


def _distinct(lists: Iterable[list[Finding]]) -> list[Finding]:
    """The suspicions of several logs of one lint; for each fingerprint the first with a verdict, otherwise the first."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in (finding for findings in lists for finding in findings):
        key = (finding.rule, finding.site.path, finding.fingerprint or str(finding.site))
        known = found.get(key)
        if known is None or (known.verdict is None and finding.verdict is not None):
            found[key] = finding
    return list(found.values())


def _notes(logs: Iterable[Log]) -> list[str]:
    return list(dict.fromkeys(note for log in logs for note in log.notes))
