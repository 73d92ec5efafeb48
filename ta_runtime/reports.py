"""Reports of a run: a line for each new incident, a file that is always whole, and a table at the end."""

import contextlib
import multiprocessing
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

from ta_lint import __version__
from ta_lint.core import report
from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import Unreadable, UsageError, oneline
from ta_lint.core.files import display
from ta_lint.core.finding import Finding, Severity
from ta_lint.core.reading import read
from ta_lint.core.source import Source, decode
from ta_lint.core.terminal import standard_error, wants_color
from ta_runtime import cells, ranks
from ta_runtime.coverage import CoverageText
from ta_runtime.faults import Shield
from ta_runtime.storage import Place, Remote, located, replace, shown

FORMATS = ("text", "concise", "json", "sarif", "github")
CATEGORY, LINTED = "ta-runtime/", "ta-lint/"
"""Of a log in code scanning: that of a run alone, and one with the linter's findings."""
NOTHING_TOLD = CoverageText()
NO_TRAINING = "training, as no optimizer stepped in this process"
"""What was not seen of a run without a step."""
_NO_STEP = "No training step was seen: no optimizer stepped in this process."

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}


def format_of(path: Place) -> str:
    """The format that a file name asks for: by `.sarif`, `.json` or else text."""
    return {".sarif": "sarif", ".json": "json"}.get(path.suffix.lower(), "text")


def rendered(
    findings: Sequence[Finding],
    form: str,
    root: Path,
    *,
    not_seen: Sequence[str] = (),
    looked: CoverageText = NOTHING_TOLD,
    baseline: bool = False,
    inspected: Sequence[Finding] = (),
    linted: bool = False,
    color: bool = False,
    brief: bool = False,
    partial: bool = False,
) -> str:
    """The report in one of `FORMATS`.

    `not_seen` are the ends of sentences on what the run hid, for text and SARIF, and `looked` says how much was
    looked at; `inspected` the places where it looked
    and found nothing, or could not look, for SARIF. `linted` says that the findings are those of both observers; their log takes the place
    of the linter's. `brief` leaves them and the count of
    findings out of text, and `partial` says that not all ranks have told what they saw.
    """
    rules = catalogue()
    if form == "sarif":
        from ta_lint.core.sarif import sarif_log

        return sarif_log(
            findings,
            {rule.id: rule for rule in rules.values() if linted or "runtime" in rule.observers},
            version=__version__,
            root=root,
            category=LINTED if linted else CATEGORY,
            baseline=baseline,
            notes=[*(f"Not seen: {what}." for what in not_seen), *filter(None, looked)],
            inspected=inspected,
        )
    if form == "json":
        from ta_lint.core.json_report import as_json

        return as_json(findings, rules)
    if form == "github":
        return report.github(findings, rules)
    if form == "concise":
        text = report.concise(findings, display=lambda path: cells.shown(path, root), color=color)
    else:
        text = report.text(
            findings,
            read_lines=lambda path, _: _lines(path, root),
            display=lambda path: cells.shown(path, root),
            color=color,
        )
    if brief:
        return text
    found, *hidden = _told(findings, not_seen, partial=partial)
    return (
        f"{text}{found}\n"
        + "".join(f"Not seen: {what}.\n" for what in hidden)
        + "".join(f"{sentence}\n" for sentence in filter(None, looked))
    )


class ReportFile:
    """A report on disk, replaced whole whenever there is something new.

    One that is `private` can be read by its owner alone; others are made to be shown. Ranks and child processes that
    share a name keep apart: rank 1 of `x.sarif` writes `x.rank1.sarif`, and a child process that belongs to no process
    group puts its own name there, as does one that is `apart`.

    Raises:
        UsageError: the folder does not exist, so that this is known before the run and not after it.
    """

    def __init__(
        self, path: Place, form: str | None = None, *, private: bool = False, apart: bool = False
    ) -> None:
        self.named = path.absolute()
        self.form = form or format_of(path)
        self._private, self._apart = private, apart
        self.complaint: str | None = None
        """Why the last attempt to write it failed, if it did."""
        self.written: Place | None = None
        self._started = time.time_ns()
        if isinstance(self.named, Remote):
            return
        folder = self.named.parent
        if not folder.is_dir():
            raise UsageError(f"cannot write {path}: there is no folder {display(folder)}")
        if self.named.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder")
        if not os.access(folder, os.W_OK) and not os.access(self.named, os.W_OK):
            raise UsageError(f"cannot write {path}: no permission to write in {display(folder)}")

    @property
    def path(self) -> Place:
        """Where this process writes."""
        if rank := ranks.rank():
            return self.of_rank(rank)
        if (is_child() or self._apart) and not ranks.known():
            return self._with(re.sub(r"\W+", "-", process()))
        return self.named

    def of_rank(self, rank: int) -> Place:
        """Where that of another rank than 0 is."""
        return self._with(f"rank{rank}")

    def _with(self, part: str) -> Place:
        return self.named.with_name(f"{self.named.stem}.{part}{self.named.suffix}")

    def write(self, text: str) -> None:
        """Replace the file. A disk that is full is told once and does not stop the run."""
        before, path = self.complaint, self.path
        try:
            replace(path, text, private=self._private)
            self.complaint = None
        except UsageError as error:
            self.complaint = str(error)
            if before != self.complaint:
                error_line(f"{error}; the run goes on, and the report is tried again with the next finding")
            return
        if self.written is not None and self.written != path:  # the rank was not known then
            remove([str(self.written)])
        self.written = path

    def replaces(self, path: str) -> bool:
        """Whether a report is that of another process by the same name."""
        other, own = Path(path), self.named
        return (
            path != str(self.written)
            and (str(other.parent), other.suffix) == (str(own.parent), own.suffix)
            and other.name.startswith(f"{own.stem}.")
        )

    @property
    def of_another(self) -> bool:
        """Whether another process has written the file since this one began to watch, and this one has not."""
        try:
            path = self.path
            return self.written is None and isinstance(path, Path) and path.stat().st_mtime_ns > self._started
        except OSError:
            return False


def remove(paths: Iterable[str]) -> None:
    """Remove the reports of other ranks, if they can be reached from here."""
    for path in paths:
        with Shield(OSError):
            located(path).unlink(missing_ok=True)


def is_child() -> bool:
    """Whether `multiprocessing` started this process.

    While a spawned one imports the script, only a private mark says so.
    """
    importing = getattr(multiprocessing.current_process(), "_inheriting", False)
    return importing or multiprocessing.parent_process() is not None


def process() -> str:
    """What this process is called: by `multiprocessing` if that started it, else by its number."""
    return multiprocessing.current_process().name if is_child() else str(os.getpid())


def live(finding: Finding, root: Path, stream: TextIO) -> None:
    """One line on a new incident, while the run goes on."""
    color = wants_color(stream)
    severity = finding.severity.value
    if color:
        severity = f"\033[1;{_COLORS[finding.severity]}m{severity}\033[0m"
    where = f"{cells.shown(finding.site.path, root)}:{finding.site.line}"
    who = f"rank {rank}: " if (rank := ranks.rank()) else ""
    step = finding.evidence.get("step", 0)
    line = f"{where}: {finding.rule} {severity}: {finding.message}"
    _print(f"ta-runtime: {who}step {step}: {line}", stream)


def table(findings: Sequence[Finding], root: Path, stream: TextIO) -> None:
    """All incidents at a glance: rule, severity, line, first step, in how many steps, and what it is; those that are alike
    in one row.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [finding for finding in findings if finding.counts]
    if not shown:
        return
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (
        ("rule", "left"),
        ("", "left"),
        ("line", "left"),
        ("step", "right"),
        ("times", "right"),
    ):
        grid.add_column(heading, justify=justify, no_wrap=heading != "line", overflow="fold")  # type: ignore[arg-type]
    grid.add_column("", overflow="fold")
    styles = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
    shown.sort(key=lambda finding: (-finding.severity.rank, finding.rule))
    for alike in report.grouped(shown):
        finding = alike[0]
        grid.add_row(
            finding.rule,
            Text(finding.severity.value, styles[finding.severity]),
            Text(report.places(alike, lambda path: cells.shown(path, root))),
            _extreme(min, alike, "step"),
            _extreme(max, alike, "times"),
            Text(finding.message),
        )
    width = None if stream.isatty() else 120
    color = wants_color(stream)
    console = Console(
        file=stream,
        force_terminal=color,
        color_system="auto" if color else None,
        width=width,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        _print(line.rstrip(), stream)


def _extreme(which: Callable[[list[int]], int], alike: Sequence[Finding], name: str) -> str:
    numbers = [value for one in alike if isinstance(value := one.evidence.get(name), int)]
    return str(which(numbers)) if numbers else ""


def summary(
    findings: Sequence[Finding],
    root: Path,
    files: Iterable[ReportFile],
    not_seen: Sequence[str],
    *,
    looked: CoverageText = NOTHING_TOLD,
    linted: bool = False,
    recorded: Place | None = None,
    partial: bool = False,
) -> None:
    """What a run ends with, on standard error: the table, how many findings, what was not seen, where the report is, and
    where the run is recorded, whose own report is not named.
    """
    stream = standard_error()
    with Shield(OSError, ValueError):  # it is closed, or on a full disk
        if linted:
            _verdicts(findings, root, stream)
        else:
            table(findings, root, stream)
    text, *hidden = _told(findings, not_seen, partial=partial)
    written = [file.written for file in files if file.written is not None and file.complaint is None]
    where = [shown(path) for path in written if path.parent != recorded]
    report_at = f" The report is in {' and '.join(where)}." if where else ""
    text = f"{text} {looked.looked}".rstrip()
    _print(f"ta-runtime: {text}{report_at}", stream)
    if recorded is not None:
        folder = shown(recorded)
        _print(f"ta-runtime: the run is in {folder}; `ta-runtime report {folder}` makes a page of it", stream)
    if looked.unjudged:
        _print(f"ta-runtime: {looked.unjudged[0].lower()}{looked.unjudged[1:]}", stream)
    for what in hidden:
        _print(f"ta-runtime: not seen: {what}.", stream)


def _verdicts(findings: Sequence[Finding], root: Path, stream: TextIO) -> None:
    """Each suspicion of the linter with its verdict, what only the run found, and how many there are of each."""
    width = shutil.get_terminal_size().columns if stream.isatty() else 120
    color = wants_color(stream)
    grid = report.verdicts(findings, display=lambda path: cells.shown(path, root), width=width, color=color)
    for line in [*grid.splitlines(), report.judgement(findings).rstrip("\n")]:
        _print(line, stream)


def _told(findings: Sequence[Finding], not_seen: Sequence[str], *, partial: bool) -> list[str]:
    """How many findings, as a sentence, and then what was not seen; "all checks passed" is no word for no training, nor for a
    part of the ranks.
    """
    if not findings and NO_TRAINING in not_seen:
        return [_NO_STEP, *(what for what in not_seen if what != NO_TRAINING)]
    if not findings and partial:
        return ["Nothing was found on the ranks that answered.", *not_seen]
    return [report.summary(findings).rstrip("\n"), *not_seen]


_PATIENCE = 3


class FailureReporter:
    """Says what went wrong in a part of the tool; after the third time, that it `ended`, and has it `give_up`."""

    def __init__(self, give_up: Callable[[], object], failed: str, ended: str) -> None:
        self._give_up, self._failed, self._ended = give_up, failed, ended
        self._count = 0

    def __call__(self, name: str, error: Exception) -> None:
        self._count += 1
        error_line(f"{self._failed}: {name}: {type(error).__name__}: {oneline(error)}")
        if self._count == _PATIENCE:
            error_line(self._ended)
            with Shield():
                self._give_up()


def error_line(message: str) -> None:
    """A line on standard error about the tool itself."""
    _print(f"ta-runtime: {message}", standard_error())


def _print(line: str, stream: TextIO) -> None:
    """Print a line, above the progress bars of tqdm; that nobody can read it is no reason to stop the run."""
    with Shield(OSError, ValueError, failed=lambda error: _drop(stream)):
        bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
        if getattr(bars, "_instances", None):
            bars.write(line, file=stream)  # type: ignore[union-attr]
        else:
            print(line, file=stream, flush=True)


def _drop(stream: TextIO) -> None:
    """Forget what could not be written: Python would try it again at its end, and exit with another status."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = stream.fileno()
        kept, nothing = os.dup(number), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nothing, number)
            stream.flush()
        finally:
            os.dup2(kept, number)
            os.close(kept)
            os.close(nothing)


def _lines(path: str, root: Path) -> list[str]:
    if (cell := cells.source(path)) is not None:
        return Source(path, cell).lines
    try:
        return Source(path, decode(read(root / path))).lines
    except Unreadable:
        return []
