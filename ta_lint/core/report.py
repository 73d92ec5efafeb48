"""Findings as text for people, editors and GitHub.

Every function returns the text to print, with a line end after each line. Suppressed and baselined findings appear
in JSON only (`core.json_report`). Text from a checked file or its name is made harmless: it cannot control the terminal.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from ta_lint.core.lazy import regex
from ta_lint.core.terminal import harmless, painter, width_of
from ta_lint.core.terms import Applicability, Severity, Verdict

if TYPE_CHECKING:
    from ta_lint.core.catalogue import Rule
    from ta_lint.core.finding import Finding, Site

TAB = 4
WIDTH = 100  # of a source line, in terminal cells
LINES = 3  # line numbers of similar findings, in one row of a table
_LISTED = 10  # line numbers of equal findings
ANNOTATIONS = 10  # GitHub keeps so many of each kind per step

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_FRAME = "bold blue"
_SECRET = "CWE-798"  # hard-coded credentials
_FIXABLE = "bold green"
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

_VERDICTS = {
    Verdict.CONFIRMED: "confirmed by a run",
    Verdict.REFUTED: "refuted by a run",
    Verdict.UNOBSERVED: "unobserved",
}
_VERDICT_STYLES = {Verdict.CONFIRMED: "bold red", Verdict.REFUTED: "green", Verdict.UNOBSERVED: "yellow"}

_TOKEN = regex(r"\w+|[^\w\s]")

_Paint = Callable[[str, str], str]


def never(_: "Finding") -> bool:
    return False


def text(
    findings: "Iterable[Finding]",
    *,
    read_lines: Callable[[str, int | None], list[str]],
    display: Callable[[str], str],
    color: bool,
    fixes: "Callable[[Finding], bool]" = never,
) -> str:
    """Each finding with its source line, followed by an empty line, the most harmful first; `summary` fits below.

    Of several equal findings in one file, the first is shown with the lines of all.

    `read_lines` returns the lines of a path, or of its cell with this number, and none if the file is gone; `display`
    returns the path to show. `fixes` says which findings `--fix` would fix; these are marked `[*]`.
    """
    paint = painter(color)
    lines_of = lru_cache(maxsize=1)(read_lines)
    groups: dict[object, tuple[list[Finding], list[str]]] = {}
    for finding in findings:
        if finding.counts:
            lines = lines_of(finding.site.path, _cell(finding.site))
            key = _likeness(finding, lines, fixes(finding)) or len(groups)
            groups.setdefault(key, ([], lines))[0].append(finding)
    worst_first = sorted(groups.values(), key=lambda group: -group[0][0].severity.rank)
    blocks = (_block(alike, lines, display, paint, fixes(alike[0])) for alike, lines in worst_first)
    return "".join("\n".join(block) + "\n\n" for block in blocks)


def _likeness(finding: "Finding", lines: list[str], fixable: bool) -> tuple[object, ...] | None:
    """What equal findings have in common, as nobody need read each; None if a run measured something of this one."""
    site = finding.site
    if finding.verdict is not None or finding.evidence:
        return None
    marked = lines[site.line - 1][site.column - 1 :] if site.line <= len(lines) else ""
    end = site.end_column - site.column if site.end_line == site.line else WIDTH
    shape = _shape(marked[: min(end, WIDTH)])
    return site.path, finding.rule, finding.severity, finding.message, fixable, shape


def _shape(code: str) -> str:
    """The code with every word alike and without what stands in brackets: `a.a()` for `nn.Conv2d(3, 64)`."""
    shape: list[str] = []
    depth = 0
    for token in _TOKEN.findall(code):
        depth -= depth > 0 and token in ")]}"
        if not depth:
            shape.append("a" if token[0] == "_" or token[0].isalnum() else token)
        depth += token in "([{"
    return "".join(shape)


def concise(
    findings: "Iterable[Finding]",
    *,
    display: Callable[[str], str],
    color: bool,
    fixes: "Callable[[Finding], bool]" = never,
) -> str:
    """One line for each finding: `train.py:4:5: TA600 error: message`, with `[*]` if `--fix` fixes it."""
    paint = painter(color)
    shown = [finding for finding in findings if finding.counts]
    return "".join(
        f"{_place(finding.site, display)}: {_headline(finding, paint, fixes(finding))}\n" for finding in shown
    )


def summary(findings: "Iterable[Finding]", skipped: str = "") -> str:
    """One line: how many findings of each severity in how many files, how many do not count, and what was `skipped`."""
    findings = list(findings)
    shown = [finding for finding in findings if finding.counts]
    counts = Counter(_aside(finding) for finding in findings if not finding.counts)
    aside = [*(f"{count} {why}" for why, count in sorted(counts.items())), *filter(None, [skipped])]
    tail = f" ({', '.join(aside)})" if aside else ""
    if not shown:
        return f"All checks passed{tail}.\n"
    files = len({finding.site.path for finding in shown})
    return f"Found {_severities(shown)} in {_number(files, 'file')}{tail}.\n"


def skipped_in_tests(rules: int, files: int) -> str:
    """How many rules were not looked for in how many test files, for `summary`; empty for none."""
    return f"{_number(rules, 'rule')} skipped in {_number(files, 'test file')}" if files else ""


def _aside(finding: "Finding") -> str:
    """Why a finding does not count."""
    if finding.suppression is None:
        return "in the baseline"
    return "refuted by the run" if finding.verdict is Verdict.REFUTED else "suppressed"


def remedies(findings: "Iterable[Finding]", fixes: "Callable[[Finding], bool]") -> str:
    """One line: how many findings `--fix` fixes, and how many more with `--unsafe-fixes`; empty if it would fix none."""
    fixable = [finding for finding in findings if finding.counts and finding.fix is not None]
    count = sum(map(fixes, fixable))
    more = len(fixable) - count
    if count:
        hidden = f" ({more} more with --unsafe-fixes)" if more else ""
        return f"[*] {count} fixable with --fix{hidden}\n"
    return f"{more} fixable with --fix --unsafe-fixes\n" if more else ""


def hidden(findings: "Iterable[Finding]") -> str:
    """One line: how many notes are hidden, and how to show them; empty for none."""
    notes = sum(finding.counts and finding.severity is Severity.NOTE for finding in findings)
    it = "it" if notes == 1 else "them"
    return f"{_number(notes, 'note')} hidden; --show-notes shows {it}\n" if notes else ""


def fixed(count: int, files: int) -> str:
    """One line: how many findings `--fix` has fixed; empty for none."""
    return f"Fixed {_number(count, 'finding')} in {_number(files, 'file')}.\n" if count else ""


def listed(rules: "Iterable[Rule]") -> str:
    """One line for each rule; on a terminal it is cut where the terminal ends."""
    import shutil
    import sys

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = []
    for rule in rules:
        state = "on" if rule.default else "opt-in"
        line = f"{rule.id}  {rule.name:<38} {rule.severity.value:<8} {state:<7} {rule.finds}"
        lines.append(line if width is None or len(line) <= width else f"{line[: width - 1]}…")
    return "".join(f"{line}\n" for line in lines)


def fixes_made(fixes: Mapping[str, Iterable[str]], *, display: Callable[[str], str]) -> str:
    """How often each rule was fixed, one line for a file and a rule."""
    from ta_lint.core.catalogue import catalogue

    rules = catalogue()
    return "".join(
        f"  {harmless(display(path))}: {count} x {rule} ({rules[rule].name})\n"
        for path, fixed in fixes.items()
        for rule, count in sorted(Counter(fixed).items())
    )


def diff(before: bytes, after: bytes, name: str) -> bytes:
    """What changes in a file, as a unified diff that `patch -p0` applies."""
    from difflib import diff_bytes, unified_diff

    name += "\t" if " " in name else ""  # the tab tells `patch` where the name ends
    label = os.fsencode(name)
    lines = diff_bytes(unified_diff, _lines(before), _lines(after), label, label)
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines
    )


def readable(changes: bytes, *, color: bool) -> str:
    """A diff from `diff` for a terminal: control characters made harmless, and coloured if `color`."""
    paint = painter(color)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    lines = (
        "".join(text for text, _ in _cells(line)) for line in changes.decode("utf-8", "replace").split("\n")
    )
    return "\n".join(paint(line, styles[line[0]]) if line[:1] in styles else line for line in lines)


def _lines(data: bytes) -> list[bytes]:
    """The lines with their line feeds; to `patch` nothing else ends a line."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def github(findings: "Iterable[Finding]", rules: "Mapping[str, Rule]") -> str:
    """Workflow commands that annotate a pull request, the worst findings first, as GitHub keeps only ten of each kind.

    Paths stay relative to the project root, as GitHub expects.
    """
    shown = sorted(
        (finding for finding in findings if finding.counts), key=lambda finding: -finding.severity.rank
    )
    commands = "".join(_command(finding, rules[finding.rule]) + "\n" for finding in shown)
    if max(Counter(finding.severity for finding in shown).values(), default=0) <= ANNOTATIONS:
        return commands
    return f"{commands}{_severities(shown)}: GitHub annotates the first {ANNOTATIONS} of each kind, this log has all\n"


def statistics(
    findings: "Iterable[Finding]",
    rules: "Mapping[str, Rule]",
    *,
    color: bool,
    fixes: "Callable[[Finding], bool]" = never,
) -> str:
    """A table of count, rule id, severity and name, most frequent first.

    A rule is marked `[*]` if `--fix` fixes all of its findings, and `[-]` if it fixes some.
    """
    paint = painter(color)
    rows = list(counts(findings, fixes))
    width = len(str(rows[0][1])) if rows else 0
    marked = any(fixable for _, _, fixable in rows)
    table = ""
    for rule_id, count, fixable in rows:
        rule = rules[rule_id]
        severity = paint(f"{rule.severity.value:<7}", _STYLES[rule.severity])
        mark = "   " if not fixable else f"[{paint('*' if fixable == count else '-', _FIXABLE)}]"
        table += f"{count:>{width}}  {rule_id}  {f'{mark}  ' if marked else ''}{severity}  {rule.name}\n"
    return table


def counts(
    findings: "Iterable[Finding]", fixes: "Callable[[Finding], bool]"
) -> Iterator[tuple[str, int, int]]:
    """Each rule with the number of its findings and how many of them `--fix` fixes, most frequent first."""
    shown = [finding for finding in findings if finding.counts]
    fixable = Counter(finding.rule for finding in shown if fixes(finding))
    counts = Counter(finding.rule for finding in shown)
    for rule_id, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        yield rule_id, count, fixable[rule_id]


def finite_evidence(finding: "Finding") -> dict[str, float | int | str]:
    """The evidence with NaN and infinities as strings: a broken run measures them, and JSON cannot represent them."""
    return {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in finding.evidence.items()
    }


def _headline(finding: "Finding", paint: _Paint, fixable: bool) -> str:
    severity = paint(finding.severity.value, _STYLES[finding.severity])
    mark = f" [{paint('*', _FIXABLE)}]" if fixable else ""
    return f"{paint(finding.rule, 'bold')}{mark} {severity}: {harmless(finding.message)}"


def _place(site: "Site", display: Callable[[str], str]) -> str:
    return f"{harmless(display(site.path))}:{site.position}"


def _cell(site: "Site") -> int | None:
    return site.cell.number if site.cell is not None else None


def _block(
    alike: "list[Finding]", lines: list[str], display: Callable[[str], str], paint: _Paint, fixable: bool
) -> Iterator[str]:
    """The lines of the first of equal findings, with where they all are."""
    from ta_lint.core.catalogue import rule_of

    finding = alike[0]
    site = finding.site
    number = str(site.line)
    margin = " " * len(number)
    bar = paint("|", _FRAME)
    inside = f" in {harmless(site.name)}" if site.name else ""
    yield _headline(finding, paint, fixable)
    yield f"{margin}{paint('-->', _FRAME)} {_place(site, display)}{inside}"
    # reports are stored and shared: do not copy the secret into them
    secret = _SECRET in rule_of(finding.rule).cwe
    if site.line <= len(lines) and not secret:
        shown, before, carets = _excerpt(lines[site.line - 1], site)
        yield f"{margin} {bar}"
        yield f"{paint(number, _FRAME)} {bar} {shown}".rstrip()
        yield f"{margin} {bar} {' ' * before}{paint('^' * carets, _STYLES[finding.severity])}"
        yield f"{margin} {bar}"
    for related in finding.related:
        remark = f"{_place(related.site, display)}: {harmless(related.message)}"
        yield f"{margin} {paint('=', _FRAME)} note: {remark}"
    if len(alike) > 1:
        places = list(dict.fromkeys(one.site.position.rpartition(":")[0] for one in alike))
        listed = ", ".join(places[:_LISTED]) + ", ..." * (len(places) > _LISTED)
        all_of_them = f"{len(alike)} x {finding.rule} in {harmless(display(site.path))}: {listed}"
        yield f"{margin} {paint('=', _FRAME)} {all_of_them}"
    if finding.verdict is not None:
        verdict = _verdict(finding) if finding.observer == "runtime" else told(finding)
        yield f"{margin} {paint('=', _FRAME)} verdict: {verdict}"
    if finding.evidence:
        yield f"{margin} {paint('=', _FRAME)} measured: {_measured(finding.evidence)}"
    if finding.fix is not None:
        unsafe = " (unsafe)" if finding.fix.applicability is Applicability.UNSAFE else ""
        yield f"{margin} {paint('=', _FRAME)} fix: {harmless(finding.fix.title)}{unsafe}"
    yield f"{margin} {paint('=', _FRAME)} help: ta-lint rule {finding.rule}"


def verdicts(findings: "Iterable[Finding]", *, display: Callable[[str], str], width: int, color: bool) -> str:
    """A table with the verdict of a run on each suspicion: rule, line, verdict, evidence; the worst first.

    Findings suppressed by the file or a setting are left out, refuted ones stay. `width` is that of the page, in
    terminal cells.
    """
    shown = [finding for finding in findings if finding.counts or finding.verdict is Verdict.REFUTED]
    if not shown:
        return ""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("rule", "line", "verdict"):
        grid.add_column(heading, no_wrap=heading != "line", overflow="fold")
    grid.add_column("evidence", overflow="fold")
    order = [Verdict.CONFIRMED, Verdict.UNOBSERVED, None, Verdict.REFUTED]
    shown.sort(key=lambda one: (order.index(one.verdict), -one.severity.rank, one.rule))
    for alike in grouped(shown):
        finding = alike[0]
        evidence = harmless(finding.message)
        if finding.because:
            evidence = f"{evidence}; {finding.verdict}: {harmless(finding.because)}"
        elif finding.verdict is Verdict.CONFIRMED:
            evidence = f"{evidence} ({_measured(finding.evidence)})"
        grid.add_row(
            Text(finding.rule, _STYLES[finding.severity] if finding.counts else ""),
            Text(places(alike, display)),
            Text(_verdict(finding), _VERDICT_STYLES.get(finding.verdict, "")),  # type: ignore[arg-type]
            Text(evidence),
        )
    console = Console(
        width=width, highlight=False, force_terminal=color, color_system="auto" if color else None
    )
    with console.capture() as captured:
        console.print(grid)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def grouped(findings: "Iterable[Finding]") -> "list[list[Finding]]":
    """Groups of findings that differ only in lines and numbers, such as one for each layer of a class; in order."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        key = (
            one.rule,
            one.severity,
            one.verdict,
            one.observer,
            one.message,
            one.because,
            one.site.path,
            one.counts,
        )
        found.setdefault(key, []).append(one)
    return list(found.values())


def places(alike: "list[Finding]", display: Callable[[str], str]) -> str:
    """The path and first lines of findings in one file, with their number if there are more of them."""
    found = list(dict.fromkeys(_place(one.site, display).rpartition(":")[0] for one in alike))
    first, *others = found
    shown = ", ".join([first, *(place.rpartition(":")[2] for place in others[: LINES - 1])])
    return shown if len(alike) <= min(len(found), LINES) else f"{shown} ({len(alike)} in all)"


def told(finding: "Finding") -> str:
    """The verdict of a run on a suspicion, with what it looked at or why it could not look."""
    assert finding.verdict is not None
    because = finding.because or {Verdict.UNOBSERVED: "no run came there, or measured it"}.get(
        finding.verdict, ""
    )
    return f"{_VERDICTS[finding.verdict]}{': ' if because else ''}{harmless(because)}"


def _verdict(finding: "Finding") -> str:
    """The word for a finding's verdict; a finding of the run alone did not confirm a suspicion."""
    if finding.observer == "runtime":
        return "found by the run alone"
    return finding.verdict or "source only"


def judgement(findings: "Iterable[Finding]") -> str:
    """One line: how many suspicions of the linter were confirmed, refuted and unobserved, and how many only a run found."""
    shown = [finding for finding in findings if finding.counts or finding.verdict is Verdict.REFUTED]
    suspected = Counter(finding.verdict for finding in shown if finding.observer != "runtime")
    alone = sum(finding.observer == "runtime" for finding in shown)
    parts = [f"{suspected[verdict]} {verdict}" for verdict in Verdict if suspected[verdict]]
    if suspected[None]:
        parts.append(f"{suspected[None]} that only the source shows")
    subject = (
        f"{_number(sum(suspected.values()), 'suspicion')} of the linter"
        if suspected
        else "No suspicions of the linter"
    )
    tail = f"; {_number(alone, 'finding')} of the run alone" if alone else ""
    return f"{subject}{': ' if parts else ''}{', '.join(parts)}{tail}.\n"


def _measured(evidence: Mapping[str, float | int | str]) -> str:
    """`graphs alive = 15; first at step 16, seen 6 times`."""
    numbers = {key: value for key, value in evidence.items() if key not in ("step", "times")}
    values = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in numbers.values())
    parts = [", ".join(f"{key} = {value}" for key, value in zip(numbers, values, strict=True))]
    if "step" in evidence:
        times = evidence.get("times", 1)
        parts.append(f"first at step {evidence['step']}" + (f", seen {times} times" if times != 1 else ""))
    return harmless("; ".join(filter(None, parts)))


def _excerpt(line: str, site: "Site") -> tuple[str, int, int]:
    """The part of a line to show, and how many terminal cells stand before the span and in it.

    The span takes at least one cell, even if it is empty or past the end of the line; of a span of several lines only
    the first is shown.
    """
    line = line.rstrip()
    start = min(site.column - 1, len(line))
    end = min(site.end_column - 1, len(line)) if site.end_line == site.line else len(line)
    offset = max(0, start - WIDTH)  # a line may be megabytes long: look only at what fits
    cells = list(_cells(line[offset : start + WIDTH]))
    first, last = _window([width for _, width in cells], start - offset)
    shown = "".join(text for text, _ in cells[first:last])
    before = sum(width for _, width in cells[first : start - offset])
    carets = sum(width for _, width in cells[start - offset : min(end - offset, last)])
    if offset + first > 0:
        shown, before = "…" + shown, before + 1
    if offset + last < len(line):
        shown += "…"
    return shown, before, max(carets, 1)


def _window(widths: list[int], start: int) -> tuple[int, int]:
    """The first and past-the-last index of what fits into WIDTH, including some text before `start`."""
    first, last, used = start, start, 0
    while first > 0 and used + widths[first - 1] <= WIDTH // 3:
        first -= 1
        used += widths[first]
    while last < len(widths) and used + widths[last] <= WIDTH:
        used += widths[last]
        last += 1
    while first > 0 and used + widths[first - 1] <= WIDTH:
        first -= 1
        used += widths[first]
    return first, last


def _cells(line: str) -> Iterator[tuple[str, int]]:
    """The text to print for each character, and its width in terminal cells."""
    column = 0
    for character in line:
        if character == "\t":
            width = TAB - column % TAB
            text = " " * width
        else:
            text = harmless(character)
            width = width_of(text)
        column += width
        yield text, width


def _severities(findings: "list[Finding]") -> str:
    """Such as `3 errors, 1 warning and 2 notes`."""
    counts = Counter(finding.severity for finding in findings)
    parts = [_number(counts[severity], severity.value) for severity in reversed(Severity) if counts[severity]]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _command(finding: "Finding", rule: "Rule") -> str:
    """A workflow command for one line, as in SARIF: GitHub shows an annotation below the last line of its region."""
    site = finding.site
    properties: dict[str, str | int] = {"file": site.path}
    message = finding.message
    if site.cell is not None:
        properties |= {"line": site.cell.file_line, "endLine": site.cell.file_line}
        message = in_cell(message, site)
    else:
        properties |= {"line": site.line, "endLine": site.line, "col": site.column}
        if site.end_line == site.line:
            properties["endColumn"] = site.end_column
    properties["title"] = f"{rule.id} {rule.name}"
    joined = ",".join(f"{key}={_escaped_property(str(value))}" for key, value in properties.items())
    return harmless(f"::{_COMMANDS[finding.severity]} {joined}::{_escaped(message)}")


def in_cell(message: str, site: "Site") -> str:
    """The message with its cell and line in a notebook, for readers who see the lines of the JSON file."""
    return f"{message} (cell {site.cell.number}, line {site.line})" if site.cell is not None else message


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
