"""Where an `Auditor` reports: to the console, or to files and standard output as JSON or SARIF."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ta_lint.core.finding import Finding
from ta_lint.core.terminal import standard_error
from ta_runtime import reports
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.result import Result


class Reporter(Protocol):
    """What `Auditor(reporters=...)` takes; a class of your own needs these two methods."""

    def opened(self, finding: Finding, audit: Audit) -> None:
        """A finding is new, while the run goes on."""

    def finished(self, audit: Audit) -> None:
        """The run is over, or `finish` was called: `audit.findings` are all."""


@dataclass(frozen=True)
class ConsoleReporter:
    """Prints a line to standard error for each new finding, and a table at the end."""

    def opened(self, finding: Finding, audit: Audit) -> None:
        if finding.counts:
            reports.live(finding, audit.settings.root, standard_error())

    def finished(self, audit: Audit) -> None:
        audit.summarise()

    def report(self, result: Result) -> None:
        """Print the table of what `Auditor.finish` returned, with paths from the current folder."""
        reports.summary(result.findings, Path.cwd(), (), result.not_seen)


@dataclass(frozen=True)
class _Document:
    """Keeps the file `dest` up to date at each new finding; without one, prints to standard output at the end."""

    dest: str | Path | None = None
    form = "json"

    def opened(self, finding: Finding, audit: Audit) -> None:
        """The audit keeps the file itself."""

    def finished(self, audit: Audit) -> None:
        if self.dest is None:
            sys.stdout.write(audit.rendered(self.form))
            sys.stdout.flush()


@dataclass(frozen=True)
class JSONReporter(_Document):
    """JSON in a file, kept up to date at each new finding, or without `dest` on standard output at the end."""


@dataclass(frozen=True)
class SARIFReporter(_Document):
    """SARIF in a file, kept up to date at each new finding, or without `dest` on standard output at the end."""

    form = "sarif"


def files(reporters: "list[Reporter]") -> list[reports.ReportFile]:
    """The files that these reporters want.

    Raises:
        UsageError: one cannot be written where it should be.
    """
    return [
        reports.ReportFile(Path(reporter.dest), reporter.form)
        for reporter in reporters
        if isinstance(reporter, _Document) and reporter.dest is not None
    ]
