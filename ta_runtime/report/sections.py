"""The sections of a page, the charts in them, and the file that all of it is put into."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ta_runtime.html import page
from ta_runtime.report.charts import MEDIAN, Chart
from ta_runtime.report.words import json_of, listed
from ta_runtime.runs import Run

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    id: str
    title: str
    html: str


def assembled(
    title: str, header: str, sections: Sequence[Section], charts: Sequence[Chart], runs: Sequence[Run]
) -> str:
    """The page of runs, with what draws its charts, if it has any."""
    from plotly.offline import get_plotlyjs

    figures = json_of({chart.id: {"data": chart.data, "layout": chart.layout} for chart in charts})
    scripts = [get_plotlyjs(), (_FOLDER / "page.js").read_text(encoding="utf-8")] if charts else []
    folders = listed([f"<code>{escape(str(run.folder))}</code>" for run in runs])
    body = "".join([
        header,
        _navigation(sections),
        "<main>",
        *(f'<section id="{one.id}"><h2>{escape(one.title)}</h2>{one.html}</section>' for one in sections),
        "</main>",
        f"<footer>Made by ta-runtime report from {folders}.</footer>",
        f'<script type="application/json" id="figures">{figures}</script>',
    ])  # fmt: skip
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    return page(title, style, body, scripts)


def _navigation(sections: Sequence[Section]) -> str:
    links = "".join(f'<a href="#{one.id}">{escape(one.title)}</a>' for one in sections)
    return f'<nav aria-label="Sections">{links}</nav>'


def headed(chart: Chart) -> str:
    """A chart below its title."""
    return f'<div class="chart"><h3>{escape(chart.title)}</h3>{chart.html}</div>'


def over_the_steps(charts: Sequence[Chart]) -> str:
    """Charts that are zoomed together, with a switch for the medians over their lines, if there are any."""
    switch = ""
    if any(trace.get("meta") == MEDIAN for chart in charts for trace in chart.data):
        buttons = (
            f'<button type="button" data-smooth="{value}" aria-pressed="{value}">{text}</button>'
            for value, text in (("true", "Smoothed"), ("false", "Raw"))
        )
        switch = f'<div class="switch" role="group" aria-label="How lines are drawn">{"".join(buttons)}</div>'
    return switch + "".join(map(headed, charts))


def switched(charts: Sequence[Chart]) -> str:
    """Several charts in one place, one of them shown."""
    if len(charts) == 1:
        return headed(charts[0])
    buttons = "".join(
        f'<button type="button" data-shows="{chart.id}" aria-pressed="{str(place == 0).lower()}">{escape(chart.switch)}</button>'
        for place, chart in enumerate(charts)
    )
    views = "".join(
        f'<div class="chart view"{"" if place == 0 else " hidden"}>{chart.html}</div>'
        for place, chart in enumerate(charts)
    )
    return f'<div class="switch" role="group" aria-label="What the map shows">{buttons}</div>{views}'
