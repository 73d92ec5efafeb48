"""Which metrics are wanted of what: by the names that people gave them, and regular expressions for other names."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from torch import Tensor

from ta_runtime.measure import moments
from ta_runtime.monitor import statistics
from ta_runtime.monitor.recognition import recognised
from ta_runtime.monitor.statistics import Statistic

Function = Callable[..., Any]
Aggregate = Callable[[Any], Any]


@dataclass(frozen=True)
class Metric:
    """A function of a tensor, or of two, with the names of those that it is wanted of."""

    name: str
    pattern: re.Pattern[str]
    function: Function
    aggregate: Aggregate | None
    statistic: Statistic | None
    """What the function is, if it can be taken in bulk and put together exactly."""


@dataclass(frozen=True, eq=False)
class Target:
    """Statistics that we know, by the key under which each is wanted."""

    wanted: tuple[tuple[str, Statistic], ...]
    needs: moments.Needs

    @classmethod
    def of(cls, wanted: Sequence[tuple[str, Statistic]]) -> "Target":
        return cls(tuple(wanted), moments.ordered({need for _, one in wanted for need in one.needs}))


@dataclass(frozen=True, eq=False)
class Wanted:
    """All that is wanted of one tensor: statistics that we know, and other functions by their keys."""

    target: Target | None
    functions: tuple[tuple[str, Metric], ...]


class Selection:
    """What is wanted of each of several tensors, in their order."""

    def __init__(self, wanted: list[Wanted | None]) -> None:
        self.wanted = wanted
        self._chosen = [one is not None for one in wanted]
        chosen = [one for one in wanted if one is not None]
        targets = [one.target for one in chosen if one.target is not None and not one.functions]
        self.targets: dict[Target, None] | None = dict.fromkeys(targets)
        """All that is wanted, if it is nothing but statistics that we know."""
        if len(targets) < len(chosen):
            self.targets = None
        self.owners = [[target] for target in targets]
        self.needs = [target.needs for target in targets]

    def of(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Those of the tensors of which something is wanted."""
        return tensors if all(self._chosen) else list(compress(tensors, self._chosen))


class Metrics:
    """The metrics of one kind, such as those of activations."""

    def __init__(self, kind: str, tensors: int = 1) -> None:
        self._kind = kind
        self._tensors = tensors
        self._metrics: dict[str, Metric] = {}
        self._wanted: dict[tuple[str, str], Wanted | None] = {}
        self._known: dict[str, tuple[tuple[str, ...], Selection]] = {}

    def __bool__(self) -> bool:
        return bool(self._metrics)

    def add(
        self, name: str, function: Function | str | None, regex: str, aggregate: Aggregate | None = None
    ) -> None:
        """Add one; without a function, or by a name instead of one, it is one of `statistics`.

        Raises:
            ValueError: there is one of this name, or no such statistic.
        """
        if name in self._metrics:
            raise ValueError(f"there is a metric {name!r} of kind {self._kind!r} already")
        if function is None or isinstance(function, str):
            function = statistics.named(function or name)
        statistic = None if aggregate is not None else recognised(function, self._tensors)
        self._metrics[name] = Metric(name, re.compile(regex), function, aggregate, statistic)
        self._wanted.clear()
        self._known.clear()

    def matches(self, name: str) -> bool:
        """Whether anything is wanted of a name."""
        return self.of(name, name) is not None

    def of_all(self, names: Iterable[str], kind: str) -> Selection:
        """What is wanted of each of several names, under keys `{kind}/{name}/{metric}`."""
        known, names = self._known.get(kind), tuple(names)
        if known is None or known[0] != names:
            known = names, Selection([self.of(name, f"{kind}/{name}") for name in names])
            self._known[kind] = known
        return known[1]

    def of(self, name: str, label: str) -> Wanted | None:
        """What is wanted of a name, under keys `{label}/{metric}`; None if nothing is."""
        key = name, label
        if key not in self._wanted:
            found = [
                (f"{label}/{metric.name}", metric)
                for metric in self._metrics.values()
                if metric.pattern.match(name)
            ]
            known = [(path, metric.statistic) for path, metric in found if metric.statistic is not None]
            others = tuple((path, metric) for path, metric in found if metric.statistic is None)
            self._wanted[key] = Wanted(Target.of(known) if known else None, others) if found else None
        return self._wanted[key]
