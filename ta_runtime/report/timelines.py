"""Loss, gradient norm, learning rate and time over the steps, with what was found at which of them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ta_runtime.report import logged
from ta_runtime.report.charts import COLORS, Chart, Line, all_told, colored, drawn, lines, plain, reach
from ta_runtime.report.findings import Shown
from ta_runtime.report.numbers import Numbers, Point, Series
from ta_runtime.report.words import GIGABYTE, counted, seconds, share

BARS = 120
"""Stretches of steps whose time is drawn as one bar."""
MARKS = 60
"""Places on the axis at which incidents are marked; those that are nearer to each other share one."""

_CURVES = (
    ("loss", "Loss", "step/loss", 280),
    ("gradient-norm", "Gradient norm", "step/gradient_norm", 240),
    ("learning-rate", "Learning rate", "step/learning_rate", 170),
)


def curves(runs: Mapping[str, Numbers], findings: Sequence[Shown] = ()) -> list[Chart]:
    """A chart of each of the three that was recorded, of all optimizers, and of what the script logged, of all runs.

    The name of a run is in the legend; that of a single one may be empty. Findings are those of a single one.
    """
    steps = [step for numbers in runs.values() for step in numbers.ends()]
    charts = []
    known: list[Line] = []
    for id_, title, key, height in _CURVES:
        found = _of_runs(runs, partial(of_optimizers, key=key))
        known += found
        if found:
            smooth = id_ != "learning-rate"
            note = "L2, before clipping." if id_ == "gradient-norm" else ""
            chart = _curve(id_, title, found, height=height, smooth=smooth, note=note)
            charts.append(_with_incidents(chart, findings, found) if smooth else chart)
    for place, metric in enumerate(logged.metrics(runs.values())):
        found = _of_runs(runs, metric.lines)
        if all(any(_same(line.series, other.series) for other in known) for line in found):
            continue  # the script logs what is drawn above
        charts.append(
            _curve(f"logged-{place}", metric.title, found, height=220, note="Logged by the script.")
        )
    for chart in charts:  # the same for all, as they are zoomed together
        chart.layout["xaxis"]["range"] = reach(min(steps), max(steps))
    return charts


def _same(series: Series, other: Series) -> bool:
    """Whether one line would lie upon the other: at all its steps the other has the same numbers, but for rounding."""
    values = dict(other.points)
    return bool(series.points) and all(
        step in values and _equal(value, values[step]) for step, value in series.points
    )


def _equal(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-5) or (math.isnan(value) and math.isnan(other))


def _of_runs(
    runs: Mapping[str, Numbers], of: Callable[[Numbers], Sequence[tuple[str, Series]]]
) -> list[Line]:
    """The lines of each run; of several, a run has a colour of its own, and its lines have dashes."""
    if len(runs) == 1:
        return colored(of(*runs.values()))
    return [
        Line(", ".join(filter(None, (run, name))), one, color, dashes + color // COLORS)
        for color, (run, numbers) in enumerate(runs.items())
        for dashes, (name, one) in enumerate(of(numbers))
    ]


def _curve(
    id_: str, title: str, found: Sequence[Line], *, height: int, smooth: bool = True, note: str = ""
) -> Chart:
    data, layout = lines(found, height=height, smooth=smooth)
    notes = filter(None, (note, drawn(found, smooth=smooth)))
    return Chart(id_, title, all_told(found, title), data, layout, " ".join(notes))


def _with_incidents(chart: Chart, findings: Sequence[Shown], found: Sequence[Line]) -> Chart:
    chart.data.extend(_incidents(findings, [step for line in found for step, _ in line.series.points]))
    chart.layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    return chart


def memory(numbers: Numbers) -> Iterator[Chart]:
    """What the process and the tensors on a device took."""
    named = {"the process": "memory/process", "tensors on the device, at most so far": "memory/device"}
    series = {name: numbers.series(key) for name, key in named.items()}
    found = colored((name, one.divided(GIGABYTE)) for name, one in series.items() if one is not None)
    if found:
        data, layout = lines(found, height=200, smooth=False)
        layout["yaxis"] |= {"title": {"text": "GB"}}
        yield Chart(
            "memory", "Memory", all_told(found, "Memory in GB"), data, layout, drawn(found, smooth=False)
        )


def of_optimizers(numbers: Numbers, key: str) -> list[tuple[str, Series]]:
    """A number of each optimizer, with the optimizer's name if there are several."""
    keys = [other for other in numbers.keys if other == key or other.startswith(f"{key}/")]
    found = [(other, numbers.series(other)) for other in sorted(keys, key=lambda other: (len(other), other))]
    several = len(found) > 1
    return [
        (f"optimizer {other.removeprefix(key).removeprefix('/') or 0}" if several else "", one)
        for other, one in found
        if one is not None
    ]


def _incidents(findings: Sequence[Shown], steps: Sequence[int]) -> list[dict[str, Any]]:
    """Marks above the lines, each of which leads to its finding."""
    first, last = min(steps), max(steps)
    width = max((last - first) / MARKS, 1)
    places: dict[int, list[Shown]] = {}
    for shown in findings:
        if shown.counts and shown.step is not None and first <= shown.step <= last:
            places.setdefault(int((shown.step - first) / width), []).append(shown)
    if not places:
        return []
    marks = [sorted(found, key=lambda one: -one.rank) for _, found in sorted(places.items())]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "incidents",
            "yaxis": "y2",
            "x": [found[0].step for found in marks],
            "y": [0.96] * len(marks),
            "customdata": [found[0].id for found in marks],
            "text": ["<br>".join(plain(f"{one.rule} {one.name}, step {one.step:,}") for one in found[:6])
                     + (f"<br>and {len(found) - 6} more" if len(found) > 6 else "") for found in marks],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {"symbol": "triangle-down", "size": 13, "color": [f"--{found[0].severity}" for found in marks],
                       "line": {"color": "--card", "width": 1}},
            "error_y": {"type": "constant", "symmetric": False, "value": 0, "valueminus": 0.96, "width": 0,
                        "thickness": 1, "color": "--incident"},
            "showlegend": False,
            "cliponaxis": False,
        }
    ]  # fmt: skip


def time(numbers: Numbers) -> Iterator[Chart]:
    """How long steps took, and how much of that they waited for data."""
    taken, waited = numbers.series("step/seconds"), numbers.series("step/waited_seconds")
    if taken is None or not taken.finite:
        return
    waits = dict(waited.points) if waited is not None else {}
    parts = [part for part in _bars(taken.finite) if part]
    firsts = [part[0][0] for part in parts]
    waiting = [sum(waits.get(step, 0.0) for step, _ in part) / len(part) for part in parts]
    rest = [
        max(sum(value for _, value in part) / len(part) - wait, 0)
        for part, wait in zip(parts, waiting, strict=True)
    ]
    scale, unit = (1e3, "ms") if max(value for _, value in taken.finite) < 2 else (1, "s")
    width = [part[-1][0] - part[0][0] + 1 for part in parts]
    bars = [("a step", rest, "--working")]
    if waited is not None:
        bars = [("waiting for data", waiting, "--waiting"), ("everything else", rest, "--working")]
    data: list[dict[str, Any]] = [
        {"type": "bar", "name": name, "x": firsts, "y": [float(f"{scale * value:.5g}") for value in values],
         "width": width, "offset": 0, "marker": {"color": color, "line": {"width": 0}},
         "hovertemplate": f"%{{y:.3~s}} {unit}"}
        for name, values, color in bars
    ]  # fmt: skip
    if len(parts) < len(taken.finite):
        slowest = [max(value for _, value in part) for part in parts]
        data.append(
            {"type": "scatter", "mode": "lines", "name": "slowest step", "x": firsts, "line": {"color": "--faint", "width": 1, "shape": "hv"},
             "y": [float(f"{scale * value:.5g}") for value in slowest], "hovertemplate": f"%{{y:.3~s}} {unit}"}
        )  # fmt: skip
    _, layout = lines([], height=240)
    layout |= {"barmode": "stack", "bargap": 0}
    layout["yaxis"] = layout["yaxis"] | {"title": {"text": unit}, "type": "linear", "exponentformat": "none"}
    note = ""
    if len(parts) < len(taken.finite):
        note = f"A bar is the mean of up to {counted(max(map(len, parts)), 'step')}; the thin line is the slowest of them."
    yield Chart("step-time", "Time of a step", told_time(numbers), data, layout, note)


def _bars(points: list[Point]) -> list[list[Point]]:
    width = -(-len(points) // BARS)
    return [points[begin : begin + width] for begin in range(0, len(points), width)]


def waiting(numbers: Numbers) -> tuple[float, float] | None:
    """Seconds in which all ranks waited for data, and those of all their steps; None where no loader was asked."""
    waited = numbers.total("step/waited_seconds", within="step/seconds")
    taken = numbers.total("step/seconds")
    return (waited, taken) if waited is not None and taken else None


def told_time(numbers: Numbers) -> str:
    """Time and waiting in words."""
    taken = numbers.series("step/seconds")
    if taken is None or not taken.finite:
        return ""
    ordered = sorted(value for _, value in taken.finite)
    half, slow = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    slowest = max(taken.finite, key=lambda point: point[1])
    text = f"Half of the steps took at most {seconds(half)}, 95 % at most {seconds(slow)}; "
    text += f"the slowest, step {slowest[0]:,}, {seconds(slowest[1])}. "
    found = waiting(numbers)
    if found is None:
        return f"{text}No DataLoader was asked for a batch."
    return f"{text}Of the time of all steps, {share(found[0] / found[1])} was spent waiting for data."
