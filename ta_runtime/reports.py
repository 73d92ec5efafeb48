"""Reports of a run: a line for each new incident, a file that is always whole, and a table at the end."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ta_lint import __version__
from ta_lint.core import report
from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import UsageError
from ta_lint.core.files import write_atomically
from ta_lint.core.finding import Finding, Severity
from ta_lint.core.source import Source, Unreadable, decode, read

FORMATS = ("text", "concise", "json", "sarif", "github")
CATEGORY = "ta-runtime/"

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}


def format_of(path: Path) -> str:
    """The format that a file name asks for: by `.sarif`, `.json` or else text."""
    return {".sarif": "sarif", ".json": "json"}.get(path.suffix.lower(), "text")


def rendered(
    findings: Sequence[Finding],
    form: str,
    root: Path,
    *,
    not_seen: Sequence[str] = (),
    baseline: bool = False,
    color: bool = False,
) -> str:
    """The report in one of `FORMATS`. `not_seen` are sentences on what the run hid, for text and SARIF."""
    rules = catalogue()
    if form == "sarif":
        from ta_lint.core.sarif import sarif_log

        return sarif_log(
            findings,
            rules,
            version=__version__,
            root=root,
            category=CATEGORY,
            baseline=baseline,
            notes=[f"Not seen: {what}." for what in not_seen],
        )
    if form == "json":
        return report.as_json(findings, rules)
    if form == "github":
        return report.github(findings, rules)
    if form == "concise":
        text = report.concise(findings, display=lambda path: display(root / path), color=color)
    else:
        text = report.text(
            findings,
            read_lines=lambda path: _lines(root / path),
            display=lambda path: display(root / path),
            color=color,
        )
    return text + report.summary(findings) + "".join(f"Not seen: {what}.\n" for what in not_seen)


def save(path: Path, text: str) -> str | None:
    """Write a report; returns why it could not be, as a full disk must not stop the run."""
    try:
        write_atomically(path, text)
    except UsageError as error:
        return str(error)
    return None


def live(finding: Finding, root: Path, stream: TextIO) -> None:
    """One line on a new incident, while the run goes on."""
    color = wants_color(stream)
    severity = finding.severity.value
    if color:
        severity = f"\033[1;{_COLORS[finding.severity]}m{severity}\033[0m"
    where = f"{display(root / finding.site.path)}:{finding.site.line}"
    step = finding.evidence.get("step", 0)
    print(f"ta-runtime: step {step}: {where}: {finding.rule} {severity}: {finding.message}", file=stream, flush=True)


def table(findings: Sequence[Finding], root: Path, stream: TextIO) -> None:
    """All incidents at a glance: rule, severity, line, first step, in how many steps, and what it is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [finding for finding in findings if finding.counts]
    if not shown:
        return
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("rule", "left"), ("", "left"), ("line", "left"), ("step", "right"), ("times", "right")):
        grid.add_column(heading, justify=justify, no_wrap=heading != "line", overflow="fold")  # type: ignore[arg-type]
    grid.add_column("", overflow="fold")
    styles = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
    for finding in sorted(shown, key=lambda finding: (-finding.severity.rank, finding.rule)):
        where = f"{display(root / finding.site.path)}:{finding.site.line}"
        grid.add_row(
            finding.rule,
            Text(finding.severity.value, styles[finding.severity]),
            Text(where),
            str(finding.evidence.get("step", "")),
            str(finding.evidence.get("times", "")),
            Text(finding.message),
        )
    width = None if stream.isatty() else 120
    Console(file=stream, no_color=not wants_color(stream), width=width, highlight=False).print(grid)


def summary(findings: Sequence[Finding], root: Path, output: Path | None, not_seen: Sequence[str]) -> None:
    """What a run ends with, on standard error: the table, how many findings, what was not seen, where the report is."""
    stream = sys.stderr
    table(findings, root, stream)
    text = report.summary(findings).rstrip("\n")
    where = f" {display(output)} has them." if output is not None and output.exists() and findings else ""
    print(f"ta-runtime: {text}{where}", file=stream)
    for what in not_seen:
        print(f"ta-runtime: not seen: {what}.", file=stream)
    stream.flush()


def wants_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def display(path: Path) -> str:
    """A path as the user would type it here."""
    try:
        return os.path.relpath(path)
    except (ValueError, OSError):  # on another drive, or the working folder is gone
        return str(path)


def _lines(path: Path) -> list[str]:
    try:
        return Source(str(path), decode(read(path))).lines
    except Unreadable:
        return []


def error(message: str) -> None:
    print(f"ta-runtime: {message}", file=sys.stderr, flush=True)
