"""The page: what it begins with, its sections in order, and the file that they are put into."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from ta_runtime.html import page
from ta_runtime.report import findings, layers, metrics, timelines
from ta_runtime.report.charts import Chart
from ta_runtime.report.findings import Shown
from ta_runtime.report.numbers import Numbers
from ta_runtime.report.words import counted, json_of, number, seconds, share
from ta_runtime.runs import Run
from ta_runtime.runs.command import typed
from ta_runtime.runs.trackers import is_web

LINKS = 15
"""Incidents that are linked above the timelines; all are among the findings."""
_FOLDER = Path(__file__).parent
_SIGNS = {"good": "✓", "note": "i", "warning": "!", "error": "✕", "unknown": "?"}


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    id: str
    title: str
    html: str


def html(run: Run) -> str:
    """A run as one self-contained page, which loads plotly.js from itself and nothing from anywhere.

    Raises:
        UsageError: a file of the run is damaged.
    """
    from plotly.offline import get_plotlyjs

    numbers = Numbers(run)
    found = findings.shown(run.findings) if run.findings is not None else None
    steps = _steps(numbers)
    charts: list[Chart] = []
    parts = list(_parts(run, numbers, found, charts))
    title = _title(run)
    figures = json_of({chart.id: {"data": chart.data, "layout": chart.layout} for chart in charts})
    scripts = [get_plotlyjs(), (_FOLDER / "page.js").read_text(encoding="utf-8")] if charts else []
    body = "".join([
        _header(run, title, numbers, found, steps),
        _navigation(parts),
        "<main>",
        *(f'<section id="{part.id}"><h2>{escape(part.title)}</h2>{part.html}</section>' for part in parts),
        "</main>",
        f'<footer>Made by ta-runtime report from <code>{escape(str(run.folder))}</code>.</footer>',
        f'<script type="application/json" id="figures">{figures}</script>',
    ])  # fmt: skip
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    return page(f"{title}: training report", style, body, scripts)


def _steps(numbers: Numbers) -> int:
    """How many steps were looked at."""
    for key in ("step/learning_rate", "step/loss", "step/gradient_norm", *numbers.keys[:1]):
        if (series := numbers.series(key)) is not None:
            return len({step for step, _ in series.points})
    return 0


def _title(run: Run) -> str:
    """The script that ran, else the folder."""
    words = [str(word) for word in _about(run).get("command") or ()]
    scripts = [Path(word).name for word in words[1:] if word.endswith((".py", ".ipynb"))]
    modules = [after for before, after in pairwise(words) if before == "-m"]
    others = [module for module in modules if module not in ("ta_runtime", "torch.distributed.run")]
    return (scripts or others or [run.folder.resolve().name])[0]


def _about(run: Run) -> dict[str, Any]:
    return next(iter(run.about.values()))


def _header(run: Run, title: str, numbers: Numbers, found: Sequence[Shown] | None, steps: int) -> str:
    verdict, kind = findings.verdict_line(found, steps)
    judged = findings.judgement(found or ())
    sentences = f"<strong>{escape(verdict[:1].upper() + verdict[1:])}</strong>"
    if judged:
        sentences += f" <span>{escape(judged)}</span>"
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(run))
    tiles = "".join(
        f'<div class="tile"><dt>{name}</dt><dd>{escape(value)}</dd><dd class="sub">{escape(below)}</dd></div>'
        for name, value, below in _tiles(numbers, steps)
    )
    return (
        f'<header class="top"><p class="eyebrow">Training report</p><h1>{escape(title)}</h1>'
        f'<p class="judged {kind}"><span class="sign" aria-hidden="true">{_SIGNS[kind]}</span><span>{sentences}</span></p>'
        f'<dl class="tiles">{tiles}</dl><dl class="facts">{facts}</dl></header>'
    )


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    about = _about(run)
    if command := about.get("command"):
        yield "command", f"<code>{escape(shlex.join(typed(command)))}</code>"
    if started := _when(about.get("started")):
        yield "started", escape(started)
    if torch := about.get("torch"):
        python = f", Python {about['python']}" if about.get("python") else ""
        yield "torch", escape(f"{torch}{python}")
    world = about.get("world_size")
    if isinstance(world, int):
        seen = f", {len(run.about)} recorded" if len(run.about) != world else ""
        yield "world size", f"{counted(world, 'rank')}{seen}"
    yield from _trackers(about)
    yield "folder", f"<code>{escape(str(run.folder))}</code>"


def _trackers(about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where else the run is told of; a link where that is an address of the web."""
    listed = about.get("trackers")
    for tracker in listed if isinstance(listed, list) else ():
        if not isinstance(tracker, dict) or not tracker.get("tool"):
            continue
        url, place = str(tracker.get("url") or ""), str(tracker.get("folder") or "")
        name = escape(str(tracker.get("name") or tracker.get("id") or url))
        told = f'<a href="{escape(url)}" rel="noopener noreferrer">{name}</a>' if is_web(url) else name
        if place:
            told = f"{told} <code>{escape(place)}</code>" if told else f"<code>{escape(place)}</code>"
        yield escape(str(tracker["tool"])), told


def _when(started: object) -> str:
    try:
        moment = datetime.fromisoformat(str(started))
    except ValueError:
        return ""
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}"


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
    if (wait := timelines.waiting(numbers)) is not None:
        yield "waiting for data", share(wait[0] / wait[1]), f"{seconds(wait[0])} of {seconds(wait[1])}"


def _navigation(parts: Sequence[Section]) -> str:
    links = "".join(f'<a href="#{part.id}">{escape(part.title)}</a>' for part in parts)
    return f'<nav aria-label="Sections">{links}</nav>'


def _parts(
    run: Run, numbers: Numbers, found: Sequence[Shown] | None, charts: list[Chart]
) -> Iterator[Section]:
    """The sections of the page, which add their charts to those of the page."""
    curves = list(timelines.curves(numbers, found or ()))
    charts += curves
    if curves:
        html = "".join(map(_headed, curves))
        yield Section("timelines", "Timelines", _incidents(found or ()) + html)
    maps = list(layers.maps(numbers))
    charts += maps
    if maps:
        yield Section("layers", "Layers", _switched(maps))
    if found:
        html = "".join(findings.cards([one for one in found if one.counts], _roots(run)))
        if aside := [one for one in found if not one.counts]:
            told = counted(len(aside), "finding")
            html += f"<details><summary>{told} that do not count</summary>{''.join(findings.cards(aside, _roots(run)))}</details>"
        yield Section("findings", f"Findings ({sum(one.counts for one in found)})", html)
    times = list(timelines.time(numbers))
    charts += times
    if times:
        yield Section("time", "Time and data", "".join(map(_headed, times)))
    groups = metrics.groups(numbers)
    if groups:
        html = ""
        for place, group in enumerate(groups):
            of_group = list(metrics.charts(numbers, group, place))
            charts += of_group
            drawn = "".join(map(_headed, of_group))
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


def _switched(maps: Sequence[Chart]) -> str:
    """Several charts in one place, one of them shown."""
    if len(maps) == 1:
        return _headed(maps[0])
    buttons = "".join(
        f'<button type="button" data-shows="{chart.id}" aria-pressed="{str(place == 0).lower()}">{escape(chart.switch)}</button>'
        for place, chart in enumerate(maps)
    )
    views = "".join(
        f'<div class="chart view"{"" if place == 0 else " hidden"}>{chart.html}</div>'
        for place, chart in enumerate(maps)
    )
    return f'<div class="switch" role="group" aria-label="What the map shows">{buttons}</div>{views}'


def _headed(chart: Chart) -> str:
    return f'<div class="chart"><h3>{escape(chart.title)}</h3>{chart.html}</div>'


def _roots(run: Run) -> list[Path]:
    """Where the project that ran may lie: here or above, or above the folder of the run."""
    here, there = Path.cwd(), run.folder.resolve()
    above = there.parents if isinstance(there, Path) else ()
    return list(dict.fromkeys([here, *here.parents, *above]))
