"""What else was recorded: the metrics of a monitor, in groups."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from ta_runtime.report import layers
from ta_runtime.report.charts import Chart, Scale, all_told, colored, drawn, heat, lines
from ta_runtime.report.numbers import Numbers
from ta_runtime.report.words import counted, number

LINES = 6
"""Of a metric more names than these are a map instead of lines."""


@dataclass
class MetricGroup:
    """The metrics of one kind, such as `activation`: of each metric the keys by name."""

    kind: str
    metrics: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """What it holds, in words."""
        names = {name: None for keys in self.metrics.values() for name in keys}
        if list(self.metrics) == [""]:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            return f"{', '.join(list(names)[:4])}{more}"
        return f"{counted(len(self.metrics), 'metric')} of {counted(len(names), 'name')}"


def groups(numbers: Numbers, shown: Container[str] = ()) -> list[MetricGroup]:
    """Those that no other part of the page shows; `shown` are keys of which the page says so."""
    found: dict[str, MetricGroup] = {}
    for key in numbers.keys:
        if not key.startswith(("step/", "memory/")) and key not in shown and not layers.known(key):
            kind, name, metric = _parts(key)
            found.setdefault(kind, MetricGroup(kind)).metrics.setdefault(metric, {})[name] = key
    return list(found.values())


def _parts(key: str) -> tuple[str, str, str]:
    """Kind, name and metric of a key such as `activation/encoder.0/mean`, `attention_entropy/attn.head_0` or `accuracy`."""
    kind, _, rest = key.partition("/")
    if not rest:
        return "others", key, ""
    name, _, metric = rest.rpartition("/")
    return (kind, name, metric) if name else (kind, rest, "")


def charts(numbers: Numbers, group: MetricGroup, place: int) -> Iterator[Chart]:
    """One chart for each metric of a group."""
    for index, (metric, keys) in enumerate(group.metrics.items()):
        id_, title = f"metric-{place}-{index}", metric or group.kind
        if len(keys) <= LINES:
            series = ((name, numbers.series(key)) for name, key in keys.items())
            found = colored((name, one) for name, one in series if one is not None)
            data, layout = lines(found, height=220)
            yield Chart(id_, title, all_told(found, title), data, layout, drawn(found))
            continue
        grid = numbers.grid({key: name for name, key in keys.items()}, list(keys))
        assert grid is not None
        values = [value for _, _, value in grid.values()]
        data, layout, legend = heat(grid, Scale(logarithmic=min(values) >= 0))
        summary = (
            f"{title} of {counted(len(keys), 'name')}, from {number(min(values))} to {number(max(values))}."
        )
        yield Chart(id_, title, summary, data, layout, legend=legend)
