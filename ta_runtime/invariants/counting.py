"""Counts how often candidates hold and fail, by attributes, where a template looks closer than a query can."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ta_runtime.invariants.template import Candidate, Group

Terms = Mapping[str, str | int | float]


class Tally:
    """The counts of the candidates of one template."""

    def __init__(self, template: str) -> None:
        self._template = template
        self._terms: dict[tuple[tuple[str, str | int | float], ...], Terms] = {}
        self._groups: dict[object, dict[object, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
        self._runs: dict[object, dict[object, set[int]]] = defaultdict(lambda: defaultdict(set))

    def add(
        self, terms: Terms, attributes: Mapping[str, str], trace: int, *, holds: int = 0, fails: int = 0
    ) -> None:
        """Count what was seen of a candidate in one trace where the attributes have these values."""
        key, group = tuple(sorted(terms.items())), tuple(attributes.items())
        self._terms[key] = terms
        counts = self._groups[key][group]
        counts[0] += holds
        counts[1] += fails
        self._runs[key][group].add(trace)

    def candidates(self) -> Iterator[Candidate]:
        """Those that ever held."""
        for key, terms in self._terms.items():
            groups = [
                Group(dict(group), holds, fails, len(self._runs[key][group]))  # type: ignore[call-overload]
                for group, (holds, fails) in self._groups[key].items()
            ]
            if any(group.holds for group in groups):
                yield Candidate(self._template, terms, groups)
