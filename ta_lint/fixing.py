"""Applies the fixes of one file, in rounds until nothing is left to fix, or suppresses its findings by comments.

Every byte outside the edits stays: edits apply to the text, which is written back in its original encoding.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from ta_lint.core.errors import PASSING, Unreadable, UsageError
from ta_lint.core.files import display, write_atomically
from ta_lint.core.finding import Finding, Severity, TextEdit
from ta_lint.core.reading import read
from ta_lint.core.source import Source, bytes_of, source_of
from ta_lint.core.suppress import silenced
from ta_lint.engine import contents, crashed, examine, lint, lint_file, located
from ta_lint.file import File

ROUNDS = 10  # a fix may cause another finding; one that causes itself again would never end


@dataclass(frozen=True)
class Fixed:
    """A file after its fixes: its bytes before and after, and the findings that remain."""

    file: File
    before: bytes
    after: bytes
    findings: list[Finding]
    count: int
    """The number of applied fixes."""
    complaints: tuple[str, ...]
    """Messages for the user: what could not be fixed, and why."""
    rules: tuple[str, ...] = ()
    """The rule of each applied fix."""

    @property
    def changes(self) -> bool:
        return self.before != self.after


def fix_file(file: File, accepted: frozenset[str] = frozenset()) -> Fixed:
    """Apply every fix that the file's settings allow, in memory.

    `accepted` are the fingerprints in the baseline: their findings and statements stay unchanged, as a changed
    statement has another fingerprint.

    One file never stops the others: any exception becomes a finding of this file, which stays as it is.
    """
    unchanged = file.given or b""
    try:
        return _fixed(file, accepted)
    except Unreadable:
        return Fixed(file, unchanged, unchanged, lint_file(file), 0, ())
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - as `examine` does
        findings = [*lint_file(file), *crashed(file, "fixing it", error)]
        return Fixed(file, unchanged, unchanged, findings, 0, ())


def silence_file(file: File, accepted: frozenset[str] = frozenset(), *, notes: bool = True) -> Fixed:
    """Add a suppression comment to each finding that counts, in memory; notes among them only if `notes`.

    `accepted` are the fingerprints in the baseline: their findings get no comment.
    """
    try:
        data = contents(file)
    except Unreadable as error:
        return Fixed(file, b"", b"", lint_file(file), 0, (f"{file.name}: {error.reason}",))
    findings, there, source = examine(file, data)
    wanted = [
        finding
        for finding in findings
        if finding.counts
        and finding.fingerprint not in accepted
        and (notes or finding.severity is not Severity.NOTE)
    ]
    edited, count, left = silenced(wanted, source)
    complaints = [
        f"{file.name}:{finding.site.position}: no comment suppresses {finding.rule}"
        for finding in located(left, source)
    ]
    if not count:
        return Fixed(file, data, data, there, 0, tuple(complaints))
    if not _comes_back(source, data):  # nor would the comments, which are ASCII
        complaints.append(f"{file.name}: not changed: its encoding would not give the same bytes back")
        return Fixed(file, data, data, there, 0, tuple(complaints))
    return Fixed(file, data, bytes_of(edited, data), there, count, tuple(complaints))


def _fixed(file: File, accepted: frozenset[str]) -> Fixed:
    """Apply every fix.

    Raises:
        Unreadable: the file cannot be read.
    """
    data = contents(file)
    if not _comes_back(source_of(file.name, data), data):
        complaint = f"{file.name}: not fixed: its encoding would not give the same bytes back"
        return Fixed(file, data, data, lint(file, data), 0, (complaint,))
    before, refused, rounds = data, set[str](), 0
    complaints: list[str] = []
    fixed: list[str] = []
    while True:
        examined = examine(file, data)
        findings, source = examined.findings, examined.source
        proposed = [
            finding for finding in _admitted(findings, file, source, accepted) if _key(finding) not in refused
        ]
        if not proposed:
            break
        if rounds == ROUNDS:
            rules = ", ".join(sorted({finding.rule for finding in proposed}))
            complaints.append(f"{file.name}: fixes of {rules} still bring new ones after {ROUNDS} rounds")
            break
        rounds += 1
        edited, made, broken = _with_fixes(source, data, proposed)
        data = bytes_of(edited, before)
        fixed += [finding.rule for finding in made]
        refused.update(map(_key, broken))
        complaints += [
            f"{file.name}:{finding.site.position}: the fix of {finding.rule} would break the file; it was not made"
            for finding in located(broken, source)
        ]
    return Fixed(file, before, data, examined.located, len(fixed), tuple(complaints), tuple(fixed))


def _comes_back(source: Source, data: bytes) -> bool:
    """Whether encoding the source of these bytes gives the same bytes again."""
    try:
        return bytes_of(source, data) == data
    except ValueError:  # an encoding that can only decode
        return False


def is_sound(finding: Finding, source: Source, data: bytes) -> bool:
    """Whether the fix of one finding alone leaves a file that can be parsed, compiled and encoded."""
    return not _is_broken(_edited(source, [finding]), source, data)


def save(fixed: Fixed) -> None:
    """Write a fixed file.

    Raises:
        UsageError: the file cannot be written, or has changed since it was read.
    """
    path = fixed.file.path
    try:
        present = read(path)
    except Unreadable as error:
        raise UsageError(f"cannot write {display(path)}: {error.reason}") from error
    if present == fixed.after:  # under another name
        return
    if present != fixed.before:
        raise UsageError(f"cannot write {display(path)}: it has changed since it was read")
    if not os.access(path, os.W_OK):
        raise UsageError(f"cannot write {display(path)}: it is read-only")
    write_atomically(Path(display(path)), fixed.after)


def _key(finding: Finding) -> str:
    return f"{finding.rule} {finding.fingerprint}"


def _admitted(
    findings: Iterable[Finding], file: File, source: Source, accepted: frozenset[str]
) -> Iterator[Finding]:
    """The findings to fix: neither suppressed nor accepted, nor in a statement with an accepted one."""
    findings = list(findings)
    digests = {
        fingerprint.partition(":")[0] for fingerprint in accepted
    }  # without the `:n`, as equal findings are renumbered when one is fixed
    known = {
        source.statement_at(finding.site.line)
        for finding in findings
        if finding.fingerprint.partition(":")[0] in digests
    }
    for finding in findings:
        makes = finding.fix is not None and finding.suppression is None and file.config.makes(finding.fix)
        if makes and source.statement_at(finding.site.line) not in known:
            yield finding


def _with_fixes(
    source: Source, data: bytes, proposed: list[Finding]
) -> tuple[Source, list[Finding], list[Finding]]:
    """The source after the fixes that do not conflict; the findings fixed, and those whose fix would break it."""
    chosen = _compatible(proposed)
    fixed = _edited(source, chosen)
    if not _is_broken(fixed, source, data):
        return fixed, chosen, []
    made: list[Finding] = []
    broken: list[Finding] = []
    for finding in chosen:
        if _is_broken(_edited(source, [*made, finding]), source, data):
            broken.append(finding)
        else:
            made.append(finding)
    return _edited(source, made), made, broken


def _compatible(proposed: list[Finding]) -> list[Finding]:
    """The findings whose fixes can be applied together: of two that overlap the first; the other waits for a round."""
    chosen: list[Finding] = []
    taken: list[TextEdit] = []
    for finding in proposed:
        assert finding.fix is not None
        edits = finding.fix.edits
        same = any(other.fix is not None and other.fix.edits == edits for other in chosen)  # one fix for both
        if same or not any(_conflict(edit, other) for edit in edits for other in taken):
            chosen.append(finding)
            taken += edits
    return chosen


def _conflict(first: TextEdit, second: TextEdit) -> bool:
    """Whether two edits overlap, or one inserts where the other begins or ends."""
    if first.shared and second.shared:
        return False
    (start, end), (other_start, other_end) = _span(first), _span(second)
    if start == end or other_start == other_end:
        return start <= other_end and other_start <= end
    return start < other_end and other_start < end


def _edited(source: Source, findings: Iterable[Finding]) -> Source:
    edits = dict.fromkeys(
        edit for finding in findings if finding.fix is not None for edit in finding.fix.edits
    )
    starts = list(accumulate(map(len, map(str.__add__, source.lines, source.line_ends)), initial=0))
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=_span):
        (line, column), (end_line, end_column) = _span(edit)
        parts += [source.text[done : starts[line - 1] + column - 1], edit.text]
        done = starts[end_line - 1] + end_column - 1
    return Source(source.path, "".join([*parts, source.text[done:]]))


def _span(edit: TextEdit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)


def _is_broken(fixed: Source, source: Source, data: bytes) -> bool:
    """Whether edits left a file that cannot be parsed, compiled or encoded."""
    try:
        if isinstance(fixed.syntax, SyntaxError):
            from ta_lint.syntax.concrete import whole  # loads libcst, which few runs need here

            whole(fixed)
        if source.is_compilable and not fixed.is_compilable:
            return True
        return source_of(fixed.path, bytes_of(fixed, data)).text != fixed.text
    except (Unreadable, ValueError):
        return True
