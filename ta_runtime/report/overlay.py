"""The page of several runs: how each ended, which of their settings differ, and their timelines over one another."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from ta_runtime.coverage import told
from ta_runtime.report import facts, findings, timelines
from ta_runtime.report.charts import COLORS
from ta_runtime.report.numbers import Numbers
from ta_runtime.report.page import LINKS, steps_of
from ta_runtime.report.sections import Section, assembled, over_the_steps
from ta_runtime.report.words import number, seconds
from ta_runtime.runs import Run


def html(runs: Sequence[Run]) -> str:
    """Several runs as one self-contained page; each has a colour.

    Raises:
        UsageError: a file of a run is damaged.
    """
    numbers = {str(run.folder): Numbers(run) for run in runs}
    title = f"{len(runs)} training runs"
    header = f'<header class="top"><p class="eyebrow">Training report</p><h1>{title}</h1></header>'
    charts = timelines.curves(numbers)
    sections = [Section("runs", "Runs", _table(_columns(runs, numbers)))]
    if differing := _differing(runs):
        sections.append(Section("settings", "Settings that differ", _table([_names(runs), *differing])))
    if charts:
        sections.append(Section("timelines", "Timelines", over_the_steps(charts)))
    return assembled(f"{title}: report", header, sections, charts, runs)


Row = tuple[str, Sequence[str]]
"""The name of a row, and of each run its cell, as HTML."""


def _names(runs: Sequence[Run]) -> Row:
    return "", [
        f'<i class="run" style="background:var(--series-{place % COLORS + 1})"></i><code>{escape(str(run.folder))}</code>'
        for place, run in enumerate(runs)
    ]


def _columns(runs: Sequence[Run], numbers: Mapping[str, Numbers]) -> Iterator[Row]:
    """What one wants to know of each run first."""
    yield _names(runs)
    yield "started", [escape(facts.when(facts.about(run).get("started"))) for run in runs]
    yield "steps", [f"{steps_of(of):,}" for of in numbers.values()]
    for name, key in (
        ("last loss", "step/loss"),
        ("lowest loss", "step/loss"),
        ("time of a step", "step/seconds"),
    ):
        yield name, [_figure(name, of, key) for of in numbers.values()]
    yield "found", [_found(run, steps_of(numbers[str(run.folder)])) for run in runs]


def _figure(name: str, numbers: Numbers, key: str) -> str:
    series = numbers.series(key)
    if series is None or not series.finite:
        return ""
    values = sorted(value for _, value in series.finite)
    if name == "time of a step":
        return seconds(values[len(values) // 2])
    return number(values[0] if name == "lowest loss" else series.points[-1][1])


def _found(run: Run, steps: int) -> str:
    shown = findings.shown(run.findings) if run.findings is not None else None
    coverages = facts.coverages(run)
    verdict, kind = findings.verdict_line(shown, steps, coverages)
    line = f'<span class="{kind} found">{escape(" ".join(filter(None, (verdict, *told(coverages)))))}</span>'
    counting = [one for one in shown or () if one.counts]
    entries = "".join(
        f'<li class="{one.severity}"><b>{escape(one.rule)}</b> {escape(one.name)} <code>{escape(one.place)}</code></li>'
        for one in counting[:LINKS]
    )
    more = f"<li>and {len(counting) - LINKS} more</li>" if len(counting) > LINKS else ""
    return f'{line}<ul class="named">{entries}{more}</ul>' if entries else line


def _differing(runs: Sequence[Run]) -> list[Row]:
    """The settings that are not the same in all runs."""
    known = [_joined(facts.settings(run)) for run in runs]
    names = dict.fromkeys(name for one in known for name in one)
    rows = ((name, [one.get(name, "") for one in known]) for name in names)
    return [(name, list(map(escape, values))) for name, values in rows if len(set(values)) > 1]


def _joined(settings: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Settings by name, of which several may have the same: a run has an optimizer or more."""
    found: dict[str, str] = {}
    for name, text in settings:
        found[name] = f"{found[name]}; {text}" if name in found else text
    return found


def _table(rows: "Iterator[Row] | Sequence[Row]") -> str:
    head, *body = rows
    cells = "".join(f'<th scope="col">{cell}</th>' for cell in head[1])
    lines = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in row)}</tr>'
        for name, row in body
    )
    return f'<div class="table" tabindex="0"><table><tr><td></td>{cells}</tr>{lines}</table></div>'
