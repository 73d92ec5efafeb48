"""Where a candidate always holds: the weakest condition of at most two clauses over a few attributes."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from ta_runtime.invariants.invariant import ATTRIBUTES
from ta_runtime.invariants.support import wilson
from ta_runtime.invariants.template import Group

CLAUSES = 2
"""How many a condition has at most: one with more is about one place in one program, and nobody reads it."""


def weakest(groups: Sequence[Group], support: float) -> Mapping[str, str] | None:
    """The condition under which nothing failed that is met most often, of those with the fewest clauses.

    Args:
        groups: counts by attributes, each combination of values once.
        support: the least lower bound (`support.wilson`) of what is met.

    Returns:
        Attributes and their values, all of which must be met; empty: it always holds. None: there is no such condition.
    """
    for size in range(CLAUSES + 1):
        found = [
            (holds, where)
            for where, holds, fails in _conditions(groups, size)
            if _is_sure(holds, fails, support)
        ]
        if found:
            return dict(
                max(found, key=lambda each: each[0])[1]
            )  # of equals the first, by the order of `ATTRIBUTES`
    return None


def met(groups: Sequence[Group], where: Mapping[str, str]) -> list[Group]:
    """The groups that meet a condition."""
    return [
        group for group in groups if all(group.attributes.get(name) == value for name, value in where.items())
    ]


def _conditions(groups: Sequence[Group], size: int) -> list[tuple[tuple[tuple[str, str], ...], int, int]]:
    """Conditions of so many clauses, with how often the candidate held and failed where they are met."""
    counts: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for names in combinations(ATTRIBUTES, size):
        for group in groups:
            if all(group.attributes.get(name) for name in names):
                count = counts.setdefault(tuple((name, group.attributes[name]) for name in names), [0, 0])
                count[0] += group.holds
                count[1] += group.fails
    return [(where, holds, fails) for where, (holds, fails) in counts.items()]


def _is_sure(holds: int, fails: int, support: float) -> bool:
    return not fails and wilson(holds, fails) >= support
