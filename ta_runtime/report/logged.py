"""The values that a script logged: those of one metric in one chart, of training and of evaluation."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from ta_runtime.report.numbers import Numbers, Series

PREFIX = "logged/"
MOST = 24
"""Charts of them among the timelines; more are at the end of the page."""
_SPLITS = frozenset("dev eval evaluation test train training val valid validation".split())


@dataclass(frozen=True)
class LoggedMetric:
    """A metric that was logged, with the name of each of its lines."""

    title: str
    keys: Mapping[str, str]

    def lines(self, numbers: Numbers) -> list[tuple[str, Series]]:
        series = ((name, numbers.series(key)) for name, key in self.keys.items())
        return [(name, one) for name, one in series if one is not None]


def metrics(runs: Iterable[Numbers]) -> Iterator[LoggedMetric]:
    """Those of all runs, in the order in which they were first logged."""
    found: dict[str, dict[str, str]] = {}
    for key in dict.fromkeys(key for numbers in runs for key in numbers.keys if key.startswith(PREFIX)):
        title, split = _parts(key.removeprefix(PREFIX))
        found.setdefault(title, {})[split] = key
    for title, keys in islice(found.items(), MOST):
        alone = next(iter(keys.values())).removeprefix(PREFIX)
        yield LoggedMetric(title, keys) if len(keys) > 1 else LoggedMetric(alone, {"": keys.popitem()[1]})


def _parts(name: str) -> tuple[str, str]:
    """A name without the split of the data in it, and that: `val/loss` and `loss_val` are the loss of `val`."""
    before, _, rest = re.sub(r"[/_.-]", "/", name, count=1).partition("/")
    if before in _SPLITS and rest:
        return rest, before
    head, mark, last = re.fullmatch(r"(.*?)(?:([/_.-])([^/_.-]*))?", name, re.DOTALL).groups()  # type: ignore[union-attr]
    return (head, last) if mark and last in _SPLITS and head else (name, "")
