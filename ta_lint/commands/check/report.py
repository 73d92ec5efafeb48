"""Writes the report of a run in the requested format to the requested place."""

import argparse
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint import __version__
from ta_lint.commands.check.files import Chosen
from ta_lint.commands.check.outcome import Outcome
from ta_lint.commands.check.settings import Settings
from ta_lint.core import report
from ta_lint.core.files import display, write_atomically
from ta_lint.core.terminal import wants_color
from ta_lint.core.terms import Severity
from ta_lint.file import File

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.core.source import Source

    Fixes = Callable[[Finding], bool]


def write(arguments: argparse.Namespace, settings: Settings, chosen: Chosen, outcome: Outcome) -> None:
    """Write the report and the number of fixes; in formats for machines, that number goes to standard error.

    If standard input was fixed, standard output holds the result, and the report goes to standard error.
    """
    stream = sys.stderr if outcome.given is not None and arguments.fix else sys.stdout
    color = arguments.output is None and wants_color(stream)
    fixes = fixes_of(chosen.files)
    findings = outcome.findings
    text = rendered(arguments, settings, findings, fixes, color=color, given=outcome.given)
    if not arguments.quiet:
        done = report.fixed(outcome.fixed, len(outcome.fixes))
        if arguments.show_fixes:
            done += report.fixes_made(outcome.fixes, display=lambda path: display(settings.root / path))
        if arguments.format in ("text", "concise"):
            aside = hidden_notes(arguments, settings, findings)
            counts = (
                report.summary(findings, skipped(chosen.files) if outcome.looked else "")
                if chosen.files or outcome.given is not None
                else "Nothing was checked.\n"
            )
            text = f"{text}{done}{counts}{report.remedies(findings, fixes)}{aside}"
        elif stream is not sys.stderr or arguments.output is not None:  # a machine reads the report
            print(done, end="", file=sys.stderr)
    if arguments.output is not None:
        write_atomically(arguments.output, text)
    else:
        stream.write(text)


def fixes_of(files: list[File]) -> "Fixes":
    """A function that says whether `--fix` would fix a finding under the settings of its file."""
    makes = {file.name: file.config.makes for file in files}
    return lambda finding: finding.fix is not None and makes[finding.site.path](finding.fix)


def skipped(files: list[File]) -> str:
    """What the summary says of the rules that were not looked for in tests; empty if there are none."""
    of_tests = [rules for file in files if (rules := file.skipped)]
    return report.skipped_in_tests(len(frozenset().union(*of_tests)), len(of_tests))


def hidden_notes(arguments: argparse.Namespace, settings: Settings, findings: "list[Finding]") -> str:
    """One line that counts the notes which the report leaves out; empty if it leaves none out."""
    leaves_out = arguments.format == "text" and not arguments.statistics and not settings.config.show_notes
    return report.hidden(findings) if leaves_out else ""


def rendered(
    arguments: argparse.Namespace,
    settings: Settings,
    findings: "list[Finding]",
    fixes: "Fixes",
    *,
    color: bool,
    given: bytes | None = None,
) -> str:
    """The report without its summary; `given` is the content that was linted instead of files."""
    if arguments.statistics or arguments.format not in ("text", "concise"):
        return _with_catalogue(arguments, settings, findings, fixes, color)

    def shown(path: str) -> str:
        return display(settings.root / path)

    if arguments.format == "concise":
        return report.concise(findings, display=shown, color=color, fixes=fixes)
    lines = _line_reader(settings.root, given)
    if not settings.config.show_notes:
        findings = [finding for finding in findings if finding.severity is not Severity.NOTE]
    return report.text(findings, read_lines=lines, display=shown, color=color, fixes=fixes)


def _with_catalogue(
    arguments: argparse.Namespace, settings: Settings, findings: "list[Finding]", fixes: "Fixes", color: bool
) -> str:
    """The report in a format that needs the rules' pages."""
    from ta_lint.core.catalogue import catalogue

    rules = catalogue()
    if arguments.format == "sarif":
        from ta_lint.core.sarif import sarif_log

        known = settings.config.baseline is not None
        seen = {rule.id: rule for rule in rules.values() if "static" in rule.observers}
        return sarif_log(findings, seen, version=__version__, root=settings.root, baseline=known)
    if arguments.format == "github":
        return report.github(findings, rules)
    if arguments.format == "json":
        from ta_lint.core.json_report import as_json, statistics_as_json

        return (
            statistics_as_json(findings, rules, fixes) if arguments.statistics else as_json(findings, rules)
        )
    if arguments.statistics:
        return report.statistics(findings, rules, color=color, fixes=fixes)
    from ta_lint.core import ci

    return ci.rendered(arguments.format, findings, rules, settings.config.fail_level)


def _line_reader(root: Path, given: bytes | None) -> Callable[[str, int | None], list[str]]:
    """A function that reads the lines of a file, or of a cell by number; they are empty if the file is gone."""

    @lru_cache(maxsize=1)  # a notebook may be large, and is read once per cell
    def source_at(path: str) -> "Source":
        from ta_lint.core.reading import read
        from ta_lint.core.source import source_of

        return source_of(path, given if given is not None else read(root / path))

    def lines_of(path: str, cell: int | None) -> list[str]:
        from ta_lint.core.errors import Unreadable

        try:
            source = source_at(path)
        except Unreadable:
            return []
        notebook = source.notebook
        return notebook.lines_of(cell) if notebook is not None and cell is not None else source.lines

    return lines_of
