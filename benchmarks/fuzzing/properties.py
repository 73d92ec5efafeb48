"""What must hold of every input, whatever it is: a linter that promises it for all files is asked with any.

- Linting raises nothing, reports no crash of a check (TA000), and says the same twice, and with `--no-gates`.
- A finding is within its file, and so are the edits of its fix; every format can tell it.
- Fixing raises nothing. What it makes can be read and compiled if it could before, a second time changes nothing, what was fixed
  is gone, and no byte changes but those that a fix names, of findings that nobody suppressed.
- All that takes no more work than `work.CALLS`.
"""

import json
import os
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from fuzzing import work
from ta_lint import __version__, fixing
from ta_lint.core import report, sarif
from ta_lint.core.catalogue import catalogue
from ta_lint.core.config import Config, Configs, Options
from ta_lint.core.errors import Unreadable
from ta_lint.core.files import encodable
from ta_lint.core.finding import Finding, Site, TextEdit
from ta_lint.core.json_report import as_json
from ta_lint.core.notebook import read_notebook
from ta_lint.core.source import Source, source_of
from ta_lint.core.suppress import silencing
from ta_lint.core.terms import Severity
from ta_lint.engine import lint_file
from ta_lint.file import File
from ta_lint.fixing import Fixed, fix_file

T = TypeVar("T")

TARGETS = (None, "1.9", "2.0", "2.4", "2.6", "2.9")
"""What `target-torch` is: what rules say of deprecated names depends on it."""


@dataclass(frozen=True)
class Input:
    """A file to judge: its name, which says what it is, what it holds, and for which torch it is meant."""

    name: str
    data: bytes
    target: str | None = None
    origin: str = ""
    """Which generator made it, for the summary."""
    dry: bool = False
    """Whether its dry run is judged, and not linting it."""


@dataclass(frozen=True)
class Problem:
    """A property that does not hold: which, what of it, and all that is known."""

    kind: str
    what: str
    """Equal for inputs that fail for one reason, as far as can be told."""
    detail: str = ""

    @property
    def signature(self) -> tuple[str, str]:
        return self.kind, self.what


@dataclass
class Judgement:
    """What became of one input."""

    problems: list[Problem] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    """How many findings each rule had."""
    fixed: Counter[str] = field(default_factory=Counter)
    """How many findings of each rule were proposed to be fixed, unsafe fixes included."""
    complaints: Counter[str] = field(default_factory=Counter)
    """What could not be fixed, without the place: the linter saw itself that a fix would break the file."""
    compiles: bool = False
    seconds: float = 0.0

    def add(self, kind: str, what: str, detail: str = "") -> None:
        self.problems.append(Problem(kind, what, detail))


def _says_not_run(finding: Finding) -> bool:
    """Whether it says that a file is not run dry, which it does if a check wants that: without gates one always does."""
    return finding.rule == "TA001" and finding.severity is Severity.NOTE


def judged(given: Input) -> Judgement:
    """Every property of one input. Call it in a thread with a deep stack (`runner.start_thread`)."""
    return _Judge(given).judgement()


@cache
def _config(target: str | None, unsafe: bool) -> Config:
    options = Options(select=["ALL"], isolated=True, target_torch=target, unsafe_fixes=unsafe)
    return Configs(options, Path(os.sep)).root_config


class _Judge:
    """One input, and what is known of it so far."""

    def __init__(self, given: Input) -> None:
        self._given = given
        self._judgement = Judgement()
        self._add = self._judgement.add
        self._found: list[Finding] = []

    def judgement(self) -> Judgement:
        began = time.process_time()
        try:
            self._judge()
        except Exception as error:  # noqa: BLE001 - what a broken result does to the judge is a problem of the input, too
            self._raised("judge", error)
        self._judgement.seconds = time.process_time() - began
        return self._judgement

    def _judge(self) -> None:
        given = self._given
        self._judgement.compiles = _compiles(given.name, given.data)
        file = self._file(given.data)
        findings = self._bounded("lint", lambda: lint_file(file))
        if findings is None:
            return
        self._judgement.found.update(finding.rule for finding in findings)
        self._found = findings
        self._crashes(findings)
        source = _source(file)
        self._places(findings, source)
        self._formats(findings, source)
        ungated = self._bounded("lint without gates", lambda: lint_file(file._replace(gated=False)))
        if ungated is not None:
            self._same("gates", "a finding is not found without gates", findings, ungated)
            every = [one for one in ungated if not _says_not_run(one)]
            self._same("gates", "a finding is not found with gates", every, findings)
        for unsafe in (False, True) if any(finding.fix is not None for finding in findings) else (True,):
            self._fixes(self._file(given.data, unsafe))
        again = self._bounded("lint again", lambda: lint_file(file))
        if again is not None and again != findings:
            self._add("not the same twice", _rules(set(map(str, findings)) ^ set(map(str, again))))

    def _file(self, data: bytes, unsafe: bool = False) -> File:
        return File(self._given.name, self._given.name, _config(self._given.target, unsafe), data)

    def _bounded(self, stage: str, task: Callable[[], T]) -> T | None:
        """What a task returns; None where it raises or does too much, which is a problem."""
        began = time.process_time()
        try:
            with work.watched():
                result = task()
        except BaseException as error:  # a panic of Rust is no `Exception`
            if isinstance(error, (KeyboardInterrupt, work.Exhausted)):
                raise
            self._raised(stage, error)
            return None
        if time.process_time() - began > work.SUSPICIOUS:
            try:
                with work.limited(), work.watched():
                    task()
            except work.Exhausted:
                self._add("hang", stage)
                return None
        return result

    def _raised(self, stage: str, error: BaseException) -> None:
        self._add(f"traceback: {stage}", _place_of(error), "".join(traceback.format_exception(error))[-6000:])

    def _crashes(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.rule == "TA000":
                self._add("TA000", _digits_out(finding.message))

    def _same(self, kind: str, what: str, one: list[Finding], other: list[Finding]) -> None:
        left = [finding for finding in one if finding not in other]
        for finding in left:
            self._add(kind, f"{what}: {finding.rule}", str(finding))

    def _places(self, findings: list[Finding], source: Source | None) -> None:
        seen = Counter((finding.rule, finding.fingerprint) for finding in findings if finding.rule != "TA002")
        for (rule, fingerprint), count in seen.items():
            if count > 1 or not fingerprint:
                self._add("fingerprint", f"{rule}: {'twice the same' if count > 1 else 'none'}")
        for finding in findings:
            for site in (finding.site, *(other.site for other in finding.related)):
                if not _is_within(site, source, self._given.data):
                    self._add("outside the file", finding.rule, str(finding))
            edits = finding.fix.edits if finding.fix is not None else ()
            spans = [
                ((edit.cell or 0, edit.line, edit.column), (edit.cell or 0, edit.end_line, edit.end_column))
                for edit in edits
            ]
            if any(start > end for start, end in spans) or any(
                end > start for (_, end), (start, _) in pairwise(spans)
            ):
                self._add("edits out of order", finding.rule, str(finding))

    def _formats(self, findings: list[Finding], source: Source | None) -> None:
        def read_lines(_: str, cell: int | None) -> list[str]:
            if source is None:
                return []
            return source.notebook.lines_of(cell or 0) if source.notebook is not None else source.lines

        rules = catalogue()
        formats: dict[str, Callable[[], str]] = {
            "text": lambda: report.text(findings, read_lines=read_lines, display=str, color=False),
            "concise": lambda: report.concise(findings, display=str, color=False),
            "github": lambda: report.github(findings, rules),
            "json": lambda: as_json(findings, rules),
            "sarif": lambda: sarif.sarif_log(findings, rules, version=__version__),
        }
        for name, render in formats.items():
            if findings:
                self._bounded(f"format {name}", lambda render=render: encodable(render()).encode())  # type: ignore[misc]
        if source is not None and source.notebook is None:
            for finding in findings[:3]:
                self._bounded("silencing", lambda finding=finding: silencing(finding, source))  # type: ignore[misc]

    def _fixes(self, file: File) -> None:
        data = self._given.data
        how = "unsafe" if file.config.unsafe_fixes else "safe"
        fixed = self._bounded(f"fix, {how}", lambda: fix_file(file))
        if fixed is None:
            return
        self._crashes(fixed.findings)
        for complaint in fixed.complaints:
            self._judgement.complaints[_kind_of_complaint(complaint)] += 1
            if "still bring new ones" in complaint:
                self._add("unstable fix", f"{how}: {complaint.partition('fixes of ')[2]}")
        if fixed.before != data:
            self._add("fix", "what it began with is not what the file held")
        admitted = self._admitted(file)
        if file.config.unsafe_fixes:
            self._judgement.fixed.update(finding.rule for finding in admitted)
        if not fixed.changes:
            if fixed.count or (admitted and not fixed.complaints):
                self._add("fix", f"{how}: made, and nothing changed: {_rules_of(admitted)}")
            return
        if not admitted:
            self._add("fix", f"{how}: changed without a finding to fix")
            return
        self._bounded("diff", lambda: report.diff(fixed.before, fixed.after, file.name))
        self._result(fixed, how)
        self._rest(fixed, admitted, how)

    def _admitted(self, file: File) -> list[Finding]:
        """The findings to fix."""
        return [
            finding
            for finding in self._found
            if finding.fix is not None and finding.suppression is None and file.config.makes(finding.fix)
        ]

    def _result(self, fixed: Fixed, how: str) -> None:
        """What fixes left can be read, is judged as they said, and has nothing left to fix."""
        rules = f"{how}: {_rules_of(self._admitted(fixed.file))}"
        if self._judgement.compiles and not _compiles(fixed.file.name, fixed.after):
            self._add("broken fix", rules, encodable(fixed.after.decode("utf-8", "replace")))
            return
        after = fixed.file._replace(given=fixed.after)
        found = self._bounded("lint what is fixed", lambda: lint_file(after))
        if found is None:
            return
        if found != fixed.findings:
            self._add("fix", f"{how}: says of the result what lint does not")
        self._crashes(found)
        again = self._bounded(f"fix again, {how}", lambda: fix_file(after))
        if again is not None and (again.changes or again.count):
            self._add("unstable fix", rules)
        before = Counter(finding.rule for finding in self._admitted(fixed.file))
        left = Counter(finding.rule for finding in found if finding.suppression is None)
        present = Counter(finding.rule for finding in self._found if finding.suppression is None)
        for rule in before:
            if left[rule] >= present[rule] and not fixed.complaints:
                self._add("fixed, and still found", f"{how}: {rule}")

    def _rest(self, fixed: Fixed, admitted: list[Finding], how: str) -> None:
        """The first round changes what the fixes name and nothing else."""
        data, file = self._given.data, fixed.file
        with mock.patch.object(fixing, "ROUNDS", 1):
            once = self._bounded("fix, one round", lambda: fix_file(file))
        if once is None:
            return
        before, after = source_of(file.name, data), source_of(file.name, once.after)
        edits = sorted(set(_edits(admitted, before)), key=_span)
        words = self._unlike(before, after)
        exact = _edited(before, edits) if not once.complaints and not _touch(edits) else None
        if not _in_order(list(_kept(before, edits)), after.text, words) or (
            exact is not None and _in_words(exact, words) != after.text
        ):
            self._add("changed beside the fixes", f"{how}: {_rules_of(admitted)}", encodable(after.text))
        if file.name.endswith(".ipynb") and _beside_code(data) != _beside_code(once.after):
            self._add(
                "changed beside the fixes",
                f"{how}: the rest of a notebook",
                encodable(once.after.decode("utf-8", "replace")),
            )
        if file.name.endswith(".py") and data[:3] == b"\xef\xbb\xbf" != once.after[:3]:
            self._add("changed beside the fixes", f"{how}: the byte-order mark")

    @staticmethod
    def _unlike(before: Source, after: Source) -> dict[str, str]:
        """In a notebook, words that stand between cells and before magics: each reading may choose others."""
        if before.notebook is None or after.notebook is None:
            return {}
        return {
            before.notebook.separator: after.notebook.separator,
            before.notebook.mark: after.notebook.mark,
        }


def _compiles(name: str, data: bytes) -> bool:
    """Whether Python compiles it: of a notebook, its cells joined, none of them left out."""
    code: str | bytes = data
    try:
        if name.endswith(".ipynb"):
            notebook = read_notebook(data)
            if notebook.refusals:
                return False
            code = notebook.text
        with warnings.catch_warnings(action="ignore"):
            compile(code, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, Unreadable):
        return False
    return True


def _source(file: File) -> Source | None:
    assert file.given is not None
    try:
        return source_of(file.name, file.given)
    except Unreadable:
        return None


def _is_within(site: Site, source: Source | None, data: bytes) -> bool:
    if (site.line, site.column) > (site.end_line, site.end_column) or min(site.line, site.column) < 1:
        return False
    if source is None:  # it cannot be read, and its lines are those of its bytes
        return site.line <= len(data.splitlines()) + 1
    lines = source.lines
    if source.notebook is not None:
        if site.cell is None:
            return False
        lines = source.notebook.lines_of(site.cell.number)
        if not 1 <= site.cell.file_line <= data.count(b"\n") + 1:
            return False
    if site.end_line == len(lines) + 1:
        return site.end_column == 1
    return (
        site.end_line <= len(lines)
        and site.column <= len(lines[site.line - 1]) + 1
        and site.end_column <= len(lines[site.end_line - 1]) + 1
    )


def _span(edit: TextEdit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)


def _edits(findings: list[Finding], source: Source) -> Iterator[TextEdit]:
    """The edits of fixes, in a notebook where they are in its joined source."""
    first = {cell.number: cell.line for cell in source.notebook.cells} if source.notebook is not None else {}
    for finding in findings:
        for edit in finding.fix.edits if finding.fix is not None else ():
            above = first[edit.cell] - 1 if edit.cell is not None else 0
            yield replace(edit, line=edit.line + above, end_line=edit.end_line + above, cell=None)


def _touch(edits: list[TextEdit]) -> bool:
    """Whether two edits overlap or meet, so that one of them waits."""
    return any(_span(edit)[1] >= _span(following)[0] for edit, following in pairwise(edits))


def _edited(source: Source, edits: list[TextEdit]) -> str:
    """The text after edits that do not touch."""
    kept = list(_kept(source, edits))
    return kept[0] + "".join(edit.text + part for edit, part in zip(edits, kept[1:], strict=True))


def _kept(source: Source, edits: list[TextEdit]) -> Iterator[str]:
    """What stands before, between and after the edits, those that overlap taken together."""
    starts = [0]
    for line, end in zip(source.lines, source.line_ends, strict=True):
        starts.append(starts[-1] + len(line) + len(end))
    done = 0
    for edit in edits:
        start, stop = starts[edit.line - 1] + edit.column - 1, starts[edit.end_line - 1] + edit.end_column - 1
        if start >= done:
            yield source.text[done:start]
        done = max(done, stop)
    yield source.text[done:]


def _in_order(kept: list[str], text: str, words: dict[str, str]) -> bool:
    """Whether a text begins with the first part, ends with the last, and has the others between, in order."""
    first, *between, last = (_in_words(part, words) for part in kept)
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for part in between:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _in_words(text: str, words: dict[str, str]) -> str:
    for before, after in words.items():
        text = text.replace(before, after)
    return text


_JSON = re.compile(r'\s*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}\[\],:"]+))', re.DOTALL)


def _beside_code(data: bytes) -> str:
    """The text of a notebook, byte by byte, but for the sources of its code cells."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    value, spans, _ = _parsed(text, 0)
    sheet, place = value, spans
    if "cells" not in value:
        sheet, place = value["worksheets"][0], spans[1]["worksheets"][1][0]
    cut = []
    for cell, (_, inner) in zip(sheet["cells"], place[1]["cells"][1], strict=True):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            key = "source" if "source" in cell else "input"
            if key in inner:
                cut.append(inner[key][0])
    parts, done = [], 0
    for start, end in sorted(cut):
        parts.append(text[done:start])
        done = end
    return "\0".join([*parts, text[done:]])


def _parsed(text: str, place: int) -> tuple[Any, Any, int]:
    """A JSON value, where it and what it holds stand, and where it ends. A span is `((start, end), spans of the parts)`."""
    match = _JSON.match(text, place)
    assert match is not None
    start, end = match.start(match.lastindex or 0), match.end()
    token = match[match.lastindex or 0]
    if token == "{":
        table: dict[str, Any] = {}
        spans: dict[str, Any] = {}
        while (following := _JSON.match(text, end)) is not None and following[1] != "}":
            if following[1] == ",":
                end = following.end()
                continue
            key = json.loads(following[2])
            colon = _JSON.match(text, following.end())
            assert colon is not None
            table[key], spans[key], end = _parsed(text, colon.end())
        assert following is not None
        return table, ((start, following.end()), spans), following.end()
    if token == "[":
        items: list[Any] = []
        places: list[Any] = []
        while (following := _JSON.match(text, end)) is not None and following[1] != "]":
            if following[1] == ",":
                end = following.end()
                continue
            item, span, end = _parsed(text, end)
            items.append(item)
            places.append(span)
        assert following is not None
        return items, ((start, following.end()), places), following.end()
    return json.loads(token), ((start, end), {}), end


def _place_of(error: BaseException) -> str:
    """What was raised and where, in the last of our own modules, without the numbers of lines."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}ta_lint{os.sep}" in frame.filename]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"
    return f"{type(error).__name__} in {where}: {_digits_out(str(error))[:120]}"


def _digits_out(text: str) -> str:
    return re.sub(r"<libcst.*|0x[0-9a-f]+|\d+(?=[^\w]|$)", "N", text.split("\n")[0], flags=re.DOTALL)[:200]


def _kind_of_complaint(complaint: str) -> str:
    return re.sub(r"^[^:]*:(?:cell \d+:)?(?:\d+:\d+:)? ?", "", complaint)


def _rules(texts: set[str]) -> str:
    return ", ".join(sorted({match for text in texts for match in re.findall(r"rule='(\w+)'", text)}))


def _rules_of(findings: list[Finding]) -> str:
    return ", ".join(sorted({finding.rule for finding in findings}))
