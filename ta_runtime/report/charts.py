"""Charts as plotly.js draws them: plain data, whose colours are the names of the page's own, such as `--series-1`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from ta_runtime.report.numbers import POINTS, Grid, Point, Series
from ta_runtime.report.words import counted, number, short

LABEL = 26
"""Characters of a layer's name beside a map, of longer ones the last."""
COLORS = 6
"""Lines that are told apart by colour; more are by their dashes."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_MARKED = 40
"""Values of a line, at most, that are each marked by a point."""


@dataclass(frozen=True)
class Chart:
    """A drawing with a title, and what it shows in words, for those who do not see it."""

    id: str
    title: str
    summary: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    note: str = ""
    """How it was drawn; shown below it."""
    switch: str = ""
    """What a button says that leads to it, where several share one place."""
    legend: str = ""
    """HTML above it."""

    @property
    def html(self) -> str:
        height = self.layout["height"]
        note = f' <span class="note">{escape(self.note)}</span>' if self.note else ""
        return (
            f'<figure id="{self.id}">{self.legend}<div class="scroll" tabindex="0" role="group" aria-label="{escape(self.title)}">'
            f'<div class="plot" role="img" aria-label="{escape(self.summary)}" data-figure="{self.id}" '
            f'style="height:{height}px"></div></div><figcaption>{escape(self.summary)}{note}</figcaption></figure>'
        )


class Line(NamedTuple):
    """A metric that is drawn, with the number of its colour and of its dashes."""

    name: str
    series: Series
    color: int = 0
    dashes: int = 0


def colored(series: Iterable[tuple[str, Series]]) -> list[Line]:
    """Metrics by name as lines that can be told apart."""
    return [Line(name, one, place, place // COLORS) for place, (name, one) in enumerate(series)]


def plain(text: str) -> str:
    """A name for plotly.js, which would take `<b>` in it for markup."""
    return escape(text, quote=False)


def lines(
    given: Sequence[Line], *, height: int, smooth: bool = True
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Each metric as a line: faint where medians are drawn over it, with a band where it is of several ranks.

    What is not `smooth`, such as a learning rate, is drawn as it is, from 0 on, unless one line is far above another.
    """
    data: list[dict[str, Any]] = []
    several = len(given) > 1
    for line in given:
        series, name = line.series, plain(line.name)
        if series.lowest:
            data += _band(line)
        _, medians = series.trend if smooth else (0, [])
        raw = _trace(line, series.thinned, width=1.2 if medians else 2, opacity=0.5 if medians else 1)
        data.append(raw | {"name": name, "showlegend": several and not medians})
        if medians:
            data[-1] |= {"meta": SMOOTHED}
            trace = _trace(line, medians, width=2.5, opacity=1) | {"hoverinfo": "skip", "hovertemplate": None}
            data.append(trace | {"name": name, "showlegend": several, "meta": MEDIAN})
    stretches = [stretch for line in given for stretch in line.series.broken()]
    values = [value for line in given for _, value in line.series.thinned]
    axis = _logarithmic(values) if (_spans(values) if smooth else _differ(given)) else _linear(values, smooth)
    layout = _layout(height, stretches)
    if steps := [step for line in given for step, _ in line.series.points]:
        layout["xaxis"] |= {"range": reach(min(steps), max(steps))}
    return data, layout | {"yaxis": axis}


SMOOTHED, MEDIAN = "smoothed", "median"
"""What the page knows a line by over which medians are drawn, and that of the medians: one can turn them off."""


def reach(first: int, last: int) -> list[float]:
    """The range of an axis that shows these steps."""
    beside = max((last - first) / 60, 0.5)
    return [first - beside, last + beside]


_AXIS: dict[str, Any] = {"fixedrange": True, "automargin": True, "nticks": 6, "zeroline": False}


def _linear(values: Sequence[float], smooth: bool) -> dict[str, Any]:
    axis = {**_AXIS, "type": "linear", "exponentformat": "power"}
    if len(set(values)) == 1:  # plotly.js would draw it from -1 to 1
        return axis | {"range": sorted([0.0, 2 * values[0] or 1.0])}
    return axis if smooth else axis | {"rangemode": "tozero"}


def _logarithmic(values: Sequence[float]) -> dict[str, Any]:
    """An axis with a mark for each power of ten, or each so-manieth; of few also for twice and five times as much."""
    ordered = sorted(value for value in values if value > 0)
    first, last = math.log10(ordered[0]), math.log10(ordered[-1])
    tens = range(math.floor(first), math.ceil(last) + 1)
    every = -(-len(tens) // _TICKS)
    marks = [digit * 10.0**ten for ten in tens[::every] for digit in ((1, 2, 5) if len(tens) <= 3 else (1,))]
    beside = max((last - first) / 20, 0.05)
    return {
        **_AXIS,
        "type": "log",
        "range": [round(first - beside, 4), round(last + beside, 4)],
        "tickmode": "array",
        "tickvals": [float(f"{mark:.1g}") for mark in marks],
        "ticktext": [f"{float(f'{mark:.1g}'):g}" for mark in marks],
    }


def _layout(height: int, stretches: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 16, "b": 36},
        "xaxis": {"title": {"text": "step", "standoff": 4}, "zeroline": False, "automargin": True, "nticks": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "annotations": [
            {"text": "not finite", "x": first, "xanchor": "left", "yref": "paper", "y": 0.02, "yanchor": "bottom",
             "showarrow": False, "font": {"color": "--error"}}
            for first, _ in stretches[:1]
        ],
        "shapes": [
            {"type": "rect", "yref": "paper", "x0": first - 0.5, "x1": last + 0.5, "y0": 0, "y1": 1, "layer": "below",
             "line": {"width": 0}, "fillcolor": "--broken"}
            for first, last in stretches
        ],
    }  # fmt: skip


def _trace(line: Line, points: Sequence[Point], *, width: float, opacity: float) -> dict[str, Any]:
    color = f"--series-{line.color % COLORS + 1}"
    mode = "lines" if len(points) > _MARKED else "lines+markers" if len(points) > 1 else "markers"
    return {
        "type": "scatter",
        "mode": mode,
        "x": [step for step, _ in points],
        "y": [float(f"{value:.6g}") for _, value in points],
        "line": {"color": color, "width": width, "dash": _DASHES[line.dashes % len(_DASHES)]},
        "marker": {"color": color, "size": 5 if len(points) > 1 else 7},
        "opacity": opacity,
        "hovertemplate": "%{y:.4~g}",
    }


def _band(line: Line) -> list[dict[str, Any]]:
    edges = []
    series = line.series
    for name, points, fill in (("smallest", series.lowest, "none"), ("largest", series.highest, "tonexty")):
        edge = _trace(line, points, width=0, opacity=1) | {
            "mode": "lines",
            "name": f"{name} of {series.ranks} ranks",
        }
        edges.append(edge | {"fill": fill, "fillcolor": "--band", "showlegend": False})
    return edges


_TICKS = 6
"""Powers of ten that are marked at most."""
_FAR = 10.0


def _differ(given: Sequence[Line]) -> bool:
    """Whether lines are of so different size that a linear axis would show one of them as zero."""
    highest = [max(value for _, value in line.series.finite) for line in given if line.series.finite]
    return len(highest) > 1 and min(highest) > 0 and max(highest) > _FAR * min(highest)


def _spans(values: Sequence[float]) -> bool:
    """Whether values are better seen on a logarithmic scale."""
    ordered = sorted(values)
    return bool(ordered) and ordered[0] > 0 and ordered[-1] / ordered[len(ordered) // 50] > 30


@dataclass(frozen=True)
class Scale:
    """How the numbers of a map become colours: by their logarithm, unless some are below 0, and around a value that they
    are expected to be near, if there is one, by at most `span` powers of ten.
    """

    colors: str = "--sequential"
    around: float | None = None
    logarithmic: bool = True
    span: float = 2.0


def heat(grid: Grid, scale: Scale) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """A map of layers and steps, with its legend. Zeros and what is not finite have colours of their own."""
    finite = sorted(z for _, _, value in grid.values() if (z := _z(value, scale)) is not None)
    low, high = (finite[len(finite) // 100], finite[-1 - len(finite) // 100]) if finite else (0.0, 1.0)
    if scale.around is not None:
        middle = math.log10(scale.around)
        low, high = middle - scale.span, middle + scale.span
    elif high - low < 1 and scale.logarithmic:
        low, high = (low + high - 1) / 2, (low + high + 1) / 2
    names = [plain(name) for name in grid.names]
    base = {
        "type": "heatmap",
        "x": grid.intervals.middles,
        "y": names,
        "z": [[None if value is None else _z(value, scale) for value in row] for row in grid.cells],
        "text": [["" if value is None else short(value) for value in row] for row in grid.cells],
        "zmin": low,
        "zmax": high,
        "colorscale": scale.colors,
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": "%{y}<br>step %{x}: %{text}<extra></extra>",
        "xgap": 0.5 if len(grid.intervals.firsts) <= 80 else 0,
        "ygap": 1,
    }
    data = [base]
    exceptions = []
    for color, name, mark in (("--zero", "zero", 0.0), ("--infinite", "not finite", math.inf)):
        if mark == 0 and not scale.logarithmic:
            continue
        cells = [[1 if value == mark else None for value in row] for row in grid.cells]
        if any(cell for row in cells for cell in row):
            flat = {
                "z": cells,
                "zmin": 0,
                "zmax": 1,
                "colorscale": f"{color},{color}",
                "hovertemplate": f"%{{y}}<br>step %{{x}}: {name}<extra></extra>",
            }
            data.append({key: value for key, value in base.items() if key != "text"} | flat)
            exceptions.append(f'<span><i style="background:var({color})"></i>{name}</span>')
    row = 20 if len(names) <= 60 else 15
    layout = {
        "height": max(row * len(names), 40) + 56,
        "margin": {"l": 8, "r": 12, "t": 44, "b": 12},
        "xaxis": {"side": "top", "title": {"text": "step", "standoff": 4}, "zeroline": False, "showgrid": False, "nticks": 8},
        "yaxis": {"autorange": "reversed", "fixedrange": True, "automargin": True, "showgrid": False, "type": "category",
                  "tickmode": "array", "tickvals": names, "ticktext": [plain(label(name)) for name in grid.names],
                  "ticks": "", "tickfont": {"family": "ui-monospace, monospace", "size": 11}},
        "hovermode": "closest",
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": place - 0.5, "y1": place - 0.5,
             "line": {"color": "--rule", "width": 1}}
            for place in blocks(grid.names)
        ],
    }  # fmt: skip
    legend = (
        f'<div class="scale" aria-hidden="true"><span>≤ {_end(low, scale)}</span>'
        f'<i class="ramp" style="background:linear-gradient(to right,var({scale.colors}))"></i>'
        f"<span>≥ {_end(high, scale)}</span>{''.join(exceptions)}</div>"
    )
    return data, layout, legend


def _z(value: float, scale: Scale) -> float | None:
    """Where a number is on a scale; None for what has a colour of its own."""
    if not math.isfinite(value) or (scale.logarithmic and value <= 0):
        return None
    return round(math.log10(value), 2) if scale.logarithmic else float(f"{value:.3g}")


def _end(z: float, scale: Scale) -> str:
    return number(float(f"{10**z:.1g}") if scale.logarithmic else float(f"{z:.2g}"))


def label(name: str) -> str:
    """The end of a name, from a dot on if there is one."""
    if len(name) <= LABEL:
        return name
    end = name[1 - LABEL :]
    return "…" + (end[end.index(".") + 1 :] if "." in end[: LABEL // 2] else end)


def blocks(names: Sequence[str]) -> list[int]:
    """Where a block of a model ends and the next begins: `h.0` and `h.1`, or `encoder` and `decoder`."""
    return [place for place in range(1, len(names)) if _block(names[place]) != _block(names[place - 1])]


def _block(name: str) -> str:
    """Up to the first number of a name, as of a list of layers."""
    parts = name.split(".")
    numbered = next((place for place, part in enumerate(parts) if part.isdigit()), None)
    if numbered is None:
        return parts[0] if len(parts) > 2 else ""
    return ".".join(parts[: numbered + 1])


MANY = 4
"""Lines that are each told in a sentence or two; of more the last values are."""


def all_told(lines: Sequence[Line], what: str = "") -> str:
    """What the lines of a chart show."""
    named = [(" of ".join(filter(None, (what, line.name))), line.series) for line in lines]
    if len(lines) <= MANY:
        return " ".join(told(series, name) for name, series in named)
    ends = [f"{line.name} {number(line.series.points[-1][1])}" for line in lines]
    return f"{what}, the last value of each of {len(lines)} lines: {'; '.join(ends)}."


def told(series: Series, what: str) -> str:
    """What a line shows, in a sentence or two."""
    if not series.finite:
        return f"{what}: not finite at all {counted(len(series.points), 'step')}."
    smallest, largest = min(series.finite, key=lambda p: p[1]), max(series.finite, key=lambda p: p[1])
    first, last = series.finite[0], series.finite[-1]
    if smallest[1] == largest[1] and len(series.finite) == len(series.points):
        return f"{what}: {number(first[1])} at {counted(len(series.points), 'step')}."
    text = f"{what}: from {number(first[1])} at step {first[0]:,} to {number(last[1])} at step {last[0]:,}"
    text += f"; smallest {number(smallest[1])} at step {smallest[0]:,}, largest {number(largest[1])} at step {largest[0]:,}."
    if lost := len(series.points) - len(series.finite):
        text += f" Not finite at {counted(lost, 'step')}, from step {series.broken()[0][0]:,} on."
    return text


def drawn(lines: Sequence[Line], *, smooth: bool = True) -> str:
    """How lines were drawn, where it is not one point for each step."""
    notes = []
    series = [line.series for line in lines]
    width = max(one.trend[0] for one in series) if smooth else 0
    if width:
        notes.append(f"The strong line is the median of {width} values around each step.")
    if any(one.is_thinned for one in series):
        count = max(len(one.finite) for one in series)
        notes.append(
            f"{count:,} values are drawn as the smallest and the largest of each of {POINTS} intervals."
        )
    if any(one.ranks > 1 for one in series):
        notes.append("The lines are those of the lowest rank; the band is the range over all ranks.")
    return " ".join(notes)
