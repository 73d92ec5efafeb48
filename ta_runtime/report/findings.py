"""What was found in a run: rule, message, evidence, verdict, and the lines of the source that it is about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ta_lint.core.catalogue import Rule, pages, rule_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Finding, Severity, Site, Verdict
from ta_lint.core.fingerprint import named
from ta_lint.core.reading import read
from ta_lint.core.source import NOTEBOOK, Source, decode
from ta_runtime.coverage import Coverage
from ta_runtime.html import marked
from ta_runtime.report.words import counted, listed, number

AROUND = 2
"""Lines of the source above and below the one that a finding is on."""
_SECRET = "CWE-798"  # hard-coded credentials: pages are kept and passed on
_VERDICTS = {
    Verdict.CONFIRMED: "confirmed by the run",
    Verdict.REFUTED: "refuted by the run",
    Verdict.UNOBSERVED: "unobserved: the run did not come there, or did not measure it",
}


@dataclass(frozen=True)
class Shown:
    """One finding of the JSON report, whose fields may be of another version or edited by hand."""

    item: Mapping[str, Any]
    number: int

    @property
    def id(self) -> str:
        return f"finding-{self.number}"

    @property
    def rule(self) -> str:
        return str(self.item.get("rule", ""))

    @property
    def name(self) -> str:
        return str(self.item.get("name", ""))

    @property
    def message(self) -> str:
        return str(self.item.get("message", ""))

    @cached_property
    def severity(self) -> str:
        found = str(self.item.get("severity", ""))
        return found if found in list(Severity) else Severity.WARNING.value

    @property
    def rank(self) -> int:
        return Severity(self.severity).rank

    @cached_property
    def verdict(self) -> Verdict | None:
        found = self.item.get("verdict")
        return Verdict(found) if found in list(Verdict) else None

    @property
    def counts(self) -> bool:
        return self.item.get("suppression") is None and not self.item.get("baselined")

    @cached_property
    def evidence(self) -> Mapping[str, Any]:
        found = self.item.get("evidence")
        return found if isinstance(found, dict) else {}

    @cached_property
    def step(self) -> int | None:
        """The step in which it first showed; None where no run saw it."""
        found = self.evidence.get("step")
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    @cached_property
    def line(self) -> int:
        return _from_1(self.item.get("line"))

    @property
    def place(self) -> str:
        cell = self.item.get("cell")
        inside = f"cell {cell}:" if cell is not None else ""
        return f"{self.item.get('path', '')}:{inside}{self.line}"


def shown(items: Sequence[Mapping[str, Any]]) -> list[Shown]:
    """The findings of a report, the worst first, then by step."""
    order = [Shown(item, 0) for item in items]
    order.sort(
        key=lambda one: (not one.counts, -one.rank, one.step if one.step is not None else 1 << 62, one.rule)
    )
    return [Shown(one.item, position) for position, one in enumerate(order, 1)]


def verdict_line(
    findings: Sequence[Shown] | None, steps: int, coverages: Sequence[Coverage]
) -> tuple[str, str]:
    """What is to be said of the run first, and as what: `good`, `note`, `warning`, `error` or `unknown`.

    `steps` have numbers, and `coverages` say how much each rank looked at, if the run ended.
    """
    if findings is None:
        return "No report of findings was recorded: nothing is known of this run but its numbers.", "unknown"
    counting = [one for one in findings if one.counts]
    if not counting:
        aside = len(findings)
        tail = f" {counted(aside, 'finding')} {'does' if aside == 1 else 'do'} not count." if aside else ""
        if not steps:
            return f"No training step was seen: no optimizer stepped.{tail}", "unknown"
        if not coverages:
            told = f"Nothing wrong was found in the {counted(steps, 'recorded step')}, but the run did not end properly."
            return f"{told}{tail}", "unknown"
        if not all(one.enough for one in coverages):
            return (
                f"Nothing wrong was found, but too little was looked at to say that all is well.{tail}",
                "note",
            )
        return f"Nothing wrong was found.{tail}", "good"
    severities = list(reversed(Severity))
    counts = [(severity, sum(one.severity == severity for one in counting)) for severity in severities]
    told = listed([counted(count, severity.value) for severity, count in counts if count])
    first = min(
        (one for one in counting if one.step is not None), key=lambda one: (one.step, -one.rank), default=None
    )
    worst = max(counting, key=lambda one: one.rank)
    when = f", the first at step {first.step:,}" if first is not None and first.step is not None else ""
    return f"{told}{when}.", worst.severity


def judgement(findings: Sequence[Shown]) -> str:
    """What the run says of the suspicions of the linter, in a sentence; empty where nobody linted it."""
    suspected = [one for one in findings if one.item.get("observer") != "runtime"]
    if not suspected:
        return ""
    counts = [(verdict, sum(one.verdict is verdict for one in suspected)) for verdict in Verdict]
    parts = [f"{count} {verdict}" for verdict, count in counts if count]
    if alone := sum(one.verdict is None for one in suspected):
        parts.append(f"{alone} that only the source shows")
    ran = len(findings) - len(suspected)
    tail = f"; {counted(ran, 'finding')} of the run alone" if ran else ""
    return f"{counted(len(suspected), 'suspicion')} of the linter: {listed(parts)}{tail}."


def cards(findings: Sequence[Shown], roots: Sequence[Path]) -> Iterator[str]:
    """Each finding as HTML. `roots` are folders that its path may be relative to."""
    for one in findings:
        yield "".join(_card(one, roots))


def _card(one: Shown, roots: Sequence[Path]) -> Iterator[str]:
    rule = _rule(one.rule)
    title = f"<code>{escape(one.rule)}</code> {escape(one.name)}"
    url = str(one.item.get("url", ""))
    if url.startswith("https://"):
        title = f'<a href="{escape(url)}" rel="noreferrer" target="_blank">{title}</a>'
    yield f'<article class="finding {one.severity}" id="{one.id}" tabindex="-1"><header>'
    yield f'<span class="tag {one.severity}">{one.severity}</span><h3>{title}</h3>'
    if one.verdict is not None:
        alone = one.item.get("observer") == "runtime"
        told = "found by the run alone" if alone else _VERDICTS[one.verdict]
        if one.verdict is Verdict.UNOBSERVED and one.item.get("because"):
            told = f"unobserved: {one.item['because']}"
        yield f'<span class="tag verdict {one.verdict}">{marked(told)}</span>'
    yield f'</header><p class="message">{marked(one.message[:1].upper() + one.message[1:])}.</p>'
    yield f'<p class="where"><code>{escape(one.place)}</code>'
    if scope := str(one.item.get("scope") or ""):
        yield f" in <code>{escape(scope)}</code>"
    yield "</p>"
    hidden = rule is not None and _SECRET in rule.cwe
    yield "" if hidden else frame(one, roots)
    yield _measured(one)
    for other in _related(one.item.get("related")):
        yield f'<p class="related">{other}</p>'
    if isinstance(mark := one.item.get("suppression"), dict):
        yield f'<p class="related">Suppressed: {marked(str(mark.get("justification", "")))}</p>'
    elif one.item.get("baselined"):
        yield '<p class="related">Accepted in the baseline.</p>'
    if rule is not None:
        yield f"<details><summary>Why it matters</summary><p>{marked(rule.summary)}</p></details>"
    yield "</article>"


def _measured(one: Shown) -> str:
    entries = [
        (name, number(value) if isinstance(value, int | float) else str(value))
        for name, value in one.evidence.items()
        if name not in ("step", "times")
    ]
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in entries)
    when = ""
    if one.step is not None:
        times = one.evidence.get("times")
        often = f", seen in {counted(times, 'step')}" if isinstance(times, int) and times > 1 else ""
        if one.verdict is Verdict.REFUTED:
            often = f", {counted(times, 'look')} in all" if isinstance(times, int) else ""
        when = (
            f'<div><dt>{"last look" if one.verdict is Verdict.REFUTED else "first"}</dt><dd><button type="button" class="step" data-step="{one.step}" '
            f'title="Show this step in the charts">step {one.step:,}</button>{often}</dd></div>'
        )
    return f'<dl class="evidence">{when}{items}</dl>' if when or items else ""


def _related(found: object) -> Iterator[str]:
    for other in found if isinstance(found, list) else ():
        if isinstance(other, dict):
            place = f"{other.get('path', '')}:{_from_1(other.get('line'))}"
            yield f"<code>{escape(place)}</code> {marked(str(other.get('message', '')))}"


def frame(one: Shown, roots: Sequence[Path]) -> str:
    """Some lines of the source, if the statement there is still the one that the finding is about."""
    source = next((source for root in roots if (source := _source(one, root)) is not None), None)
    if source is None:
        return '<p class="gone">The source is not at hand, or was changed since the run.</p>'
    first = max(one.line - AROUND, 1)
    last = min(one.line + AROUND, len(source.lines))
    rows = "".join(
        f'<span class="at{" marked" if line == one.line else ""}"><i>{line}</i>{_code(one, line, source.lines[line - 1])}\n</span>'
        for line in range(first, last + 1)
    )
    return f'<pre class="frame" tabindex="0" aria-label="Source around line {one.line}"><code>{rows}</code></pre>'


def _code(one: Shown, line: int, text: str) -> str:
    if line != one.line:
        return escape(text)
    start = _from_1(one.item.get("column")) - 1
    end = _from_1(one.item.get("end_column")) - 1 if one.item.get("end_line") == one.line else len(text)
    return f"{escape(text[:start])}<mark>{escape(text[start:end])}</mark>{escape(text[max(start, end) :])}"


def _source(one: Shown, root: Path) -> Source | None:
    """The file of a finding below a folder, if the fingerprint of the statement on its line is that of the finding."""
    name = str(one.item.get("path", ""))
    if not name or one.item.get("cell") is not None or name.endswith(NOTEBOOK):
        return None
    try:
        source = Source(name, decode(read(root / name)))
        site = Site(name, one.line, 1, one.line, 1)
        [found] = named([Finding(one.rule, one.message, Severity(one.severity), site)], source)
    except (Unreadable, ValueError):
        return None
    same = found.fingerprint.partition(":")[0] == str(one.item.get("fingerprint", "")).partition(":")[0]
    return source if same and one.line <= len(source.lines) else None


def _rule(id_: str) -> Rule | None:
    """A rule, unless the report is of a version that had others."""
    return rule_of(id_) if any(page.startswith(f"{id_}-") for page in pages()) and id_ else None


def _from_1(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1
