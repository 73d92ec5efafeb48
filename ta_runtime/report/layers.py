"""Gradients, activations, updates and weights of each layer, step by step."""

from collections.abc import Iterable, Iterator, Sequence

from ta_runtime.report.charts import Chart, Scale, heat
from ta_runtime.report.numbers import Grid, Numbers
from ta_runtime.report.words import counted, number

# An update is usually about 1e-3 of its weight (Karpathy, makemore, part 3); Glorot's and He's initialisations keep the
# variance of activations as it is.
_VIEWS = (
    ("gradients", "Gradients", "gradient", "norm", Scale(),
     "L2 norm of the gradients of a layer's parameters, before clipping"),
    ("activations", "Activations", "activation", "rms", Scale("--diverging", 1.0),
     "root mean square of what a layer puts out, which initialisations are made to keep near 1"),
    ("updates", "Updates", "update", "ratio", Scale("--diverging", 1e-3),
     "norm of a step's change to a weight over the weight's own norm, usually about 0.001"),
    ("weights", "Weights", "parameter", "norm", Scale(), "L2 norm of the parameters of a layer, after the step"),
)  # fmt: skip


def known(key: str) -> bool:
    """Whether a metric is one that the maps show."""
    return any(_name(key, kind, metric) for _, _, kind, metric, _, _ in _VIEWS)


def maps(numbers: Numbers) -> Iterator[Chart]:
    """A map of each kind that was recorded, of layers in the order of the model."""
    executed = [name for key in numbers.keys if (name := _name(key, "activation", "rms"))]
    for id_, title, kind, metric, scale, what in _VIEWS:
        names = {key: name for key in numbers.keys if (name := _name(key, kind, metric))}
        layers = names if kind == "activation" else {key: _layer(name) for key, name in names.items()}
        order = ordered(dict.fromkeys(layers.values()), executed)
        grid = numbers.grid(layers, order, squared=metric == "norm")
        if grid is not None:
            data, layout, legend = heat(grid, scale)
            yield Chart(
                id_, f"{title} by layer", told(grid, title), data, layout, _note(grid, what), title, legend
            )


def _name(key: str, kind: str, metric: str) -> str:
    """The parameter or module in a key of some kind and metric; empty if it is not such a key."""
    head, tail = f"{kind}/", f"/{metric}"
    is_one = key.startswith(head) and key.endswith(tail) and len(key) > len(head) + len(tail)
    return key[len(head) : -len(tail)] if is_one else ""


def _layer(parameter: str) -> str:
    return parameter.rpartition(".")[0] or parameter


def ordered(names: Iterable[str], executed: Sequence[str]) -> list[str]:
    """Layers in the order in which they ran, those of a block together; the others of a block in the order given.

    That one is of the optimizer, whose groups often part weights from biases and norms.
    """
    first: dict[str, float] = {}
    for place, name in enumerate(executed):
        for path in _paths(name):
            first.setdefault(path, place)
    latest: dict[str, float] = {}
    keys: dict[str, list[float]] = {}
    given = list(names)
    for name in given:
        for path in _paths(name):
            parent = path.rpartition(".")[0]
            if path not in first:  # such as attention, whose parts are not called
                first[path] = latest.get(parent, -1.0) + 1e-4
            latest[parent] = first[path]
            keys.setdefault(name, []).append(first[path])
    return sorted(given, key=keys.__getitem__)


def _paths(name: str) -> Iterator[str]:
    """`h`, `h.0` and `h.0.attn` of `h.0.attn`."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def told(grid: Grid, title: str) -> str:
    """What a map shows, in words."""
    values = list(grid.values())
    finite = [(value, name, column) for name, column, value in values if 0 < value < float("inf")]
    text = f"{title} of {counted(len(grid.names), 'layer')} at {counted(len(grid.intervals.firsts), 'time')}."
    if finite:
        ends = [("Smallest", min(finite)), ("largest", max(finite))]
        text += " " + ", ".join(
            f"{end}: {number(value)} in {name} at step {grid.intervals.firsts[column]:,}"
            for end, (value, name, column) in ends
        ) + "."  # fmt: skip
    for mark, what in ((0.0, "Zero"), (float("inf"), "Not finite")):
        names = list(dict.fromkeys(name for name, _, value in values if value == mark))
        if names:
            others = f" and {len(names) - 3} more" if len(names) > 3 else ""
            first = min(grid.intervals.firsts[column] for _, column, value in values if value == mark)
            text += f" {what} in {', '.join(names[:3])}{others}, first at step {first:,}."
    return text


def _note(grid: Grid, what: str) -> str:
    if grid.intervals.width > 1:
        return f"Colour: {what}; the largest of {grid.intervals.width} recorded steps each, on a logarithmic scale."
    return f"Colour: {what}, on a logarithmic scale."
