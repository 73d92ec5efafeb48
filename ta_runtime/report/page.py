"""The page of a run: what it begins with, and its sections in order."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ta_runtime.coverage import told
from ta_runtime.report import facts, findings, layers, logged, metrics, timelines
from ta_runtime.report.charts import Chart
from ta_runtime.report.findings import Shown
from ta_runtime.report.numbers import Numbers
from ta_runtime.report.sections import Section, assembled, headed, over_the_steps, switched
from ta_runtime.report.words import counted, number, seconds, share, size
from ta_runtime.runs import Run

LINKS = 15
"""Incidents that are linked above the timelines; all are among the findings."""
_SIGNS = {"good": "✓", "note": "i", "warning": "!", "error": "✕", "unknown": "?"}


def html(run: Run) -> str:
    """A run as one self-contained page, which loads plotly.js from itself and nothing from anywhere.

    Raises:
        UsageError: a file of the run is damaged.
    """
    numbers = Numbers(run)
    found = findings.shown(run.findings) if run.findings is not None else None
    charts: list[Chart] = []
    parts = list(_parts(run, numbers, found, charts))
    header = _header(run, numbers, found)
    return assembled(f"{facts.title(run)}: training report", header, parts, charts, [run])


def steps_of(numbers: Numbers) -> int:
    """How many steps were looked at."""
    for key in ("step/learning_rate", "step/loss", "step/gradient_norm", *numbers.keys[:1]):
        if (series := numbers.series(key)) is not None:
            return len({step for step, _ in series.points})
    return 0


def _header(run: Run, numbers: Numbers, found: Sequence[Shown] | None) -> str:
    steps = steps_of(numbers)
    coverages = facts.coverages(run)
    verdict, kind = findings.verdict_line(found, steps, coverages)
    judged = findings.judgement(found or ())
    sentences = f"<strong>{escape(verdict[:1].upper() + verdict[1:])}</strong>"
    looked, unjudged = told(coverages)
    looked = looked or ("Looked at every step in full." if coverages and steps else "")
    for further in filter(None, (judged, looked, unjudged)):
        sentences += f" <span>{escape(further)}</span>"
    known = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.html(run))
    tiles = "".join(
        f'<div class="tile"><dt>{name}</dt><dd>{escape(value)}</dd><dd class="sub">{escape(below)}</dd></div>'
        for name, value, below in _tiles(numbers, steps)
    )
    return (
        f'<header class="top"><p class="eyebrow">Training report</p><h1>{escape(facts.title(run))}</h1>'
        f'<p class="judged {kind}"><span class="sign" aria-hidden="true">{_SIGNS[kind]}</span><span>{sentences}</span></p>'
        f'<dl class="tiles">{tiles}</dl><dl class="facts">{known}</dl></header>'
    )


def _tiles(numbers: Numbers, steps: int) -> Iterator[tuple[str, str, str]]:
    """The numbers that everybody asks for first."""
    if steps:
        yield (
            "steps",
            f"{steps:,}",
            f"of {counted(len(numbers.ranks), 'rank')}" if len(numbers.ranks) > 1 else "",
        )
    for name, key in (("loss", "step/loss"), ("gradient norm", "step/gradient_norm")):
        series = numbers.series(key)
        if series is None:
            continue
        last = series.points[-1][1]
        if name == "loss":
            lowest = min(series.finite, key=lambda point: point[1], default=None)
            below = f"lowest {number(lowest[1])}, step {lowest[0]:,}" if lowest else "never finite"
        else:
            highest = max(series.finite, key=lambda point: point[1], default=None)
            below = f"highest {number(highest[1])}, step {highest[0]:,}" if highest else "never finite"
        yield f"last {name}", number(last), below
    taken = numbers.series("step/seconds")
    if taken is not None and taken.finite:
        ordered = sorted(value for _, value in taken.finite)
        yield "time of a step", seconds(ordered[len(ordered) // 2]), f"median; {seconds(sum(ordered))} in all"
    for name, key in (("memory of the device", "memory/device"), ("memory of the process", "memory/process")):
        if (series := numbers.series(key)) is not None and series.finite:
            yield (
                name,
                size(max(value for _, value in series.finite)),
                "at most",
            )
            break
    if (wait := timelines.waiting(numbers)) is not None:
        yield "waiting for data", share(wait[0] / wait[1]), f"{seconds(wait[0])} of {seconds(wait[1])}"


def _parts(
    run: Run, numbers: Numbers, found: Sequence[Shown] | None, charts: list[Chart]
) -> Iterator[Section]:
    """The sections of the page, which add their charts to those of the page."""
    if found:
        html = "".join(findings.cards([one for one in found if one.counts], _roots(run)))
        if aside := [one for one in found if not one.counts]:
            count = counted(len(aside), "finding")
            html += f"<details><summary>{count} that do not count</summary>{''.join(findings.cards(aside, _roots(run)))}</details>"
        yield Section("findings", f"Findings ({sum(one.counts for one in found)})", html)
    curves = timelines.curves({"": numbers}, found or ())
    charts += curves
    if curves:
        yield Section("timelines", "Timelines", _incidents(found or ()) + over_the_steps(curves))
    maps = list(layers.maps(numbers))
    charts += maps
    if maps:
        yield Section("layers", "Layers", switched(maps))
    times = [*timelines.time(numbers), *timelines.memory(numbers)]
    charts += times
    if times:
        yield Section("time", "Time, data and memory", "".join(map(headed, times)))
    groups = metrics.groups(numbers, {key for one in logged.metrics([numbers]) for key in one.keys.values()})
    if groups:
        html = ""
        for place, group in enumerate(groups):
            of_group = list(metrics.charts(numbers, group, place))
            charts += of_group
            drawn = "".join(map(headed, of_group))
            html += f'<details class="group"><summary><code>{escape(group.kind)}</code> {escape(group.told)}</summary>{drawn}</details>'
        yield Section("metrics", "Other metrics", html)
    if not curves and not groups and not maps:
        yield Section("numbers", "Numbers", f"<p>{_nothing(run)}</p>")


def _nothing(run: Run) -> str:
    if run.records.num_rows:
        return (
            f"No metrics were recorded. The folder holds {run.records.num_rows:,} records of snapshots, "
            "which <code>ta-runtime diff</code> compares with those of another run."
        )
    return "No step was recorded."


def _incidents(found: Sequence[Shown]) -> str:
    """Links to what was found at some step, in order of step."""
    timed = sorted(
        (one for one in found if one.counts and one.step is not None),
        key=lambda one: (one.step or 0, -one.rank),
    )
    if not timed:
        return ""
    links = "".join(
        f'<li><a class="{one.severity}" href="#{one.id}"><b>step {one.step:,}</b> {escape(one.rule)} {escape(one.name)}</a></li>'
        for one in timed[:LINKS]
    )
    if len(timed) > LINKS:
        links += f'<li><a class="unknown" href="#findings">and {len(timed) - LINKS} more</a></li>'
    return f'<ol class="incidents" aria-label="Incidents by step">{links}</ol>'


def _roots(run: Run) -> list[Path]:
    """Where the project that ran may lie: here or above, or above the folder of the run."""
    here, there = Path.cwd(), run.folder.resolve()
    above = there.parents if isinstance(there, Path) else ()
    return list(dict.fromkeys([here, *here.parents, *above]))
