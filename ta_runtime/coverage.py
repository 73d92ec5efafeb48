"""How much of a run was looked at: in how many of its steps, and which rules it was too short for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ENOUGH = 4
"""Steps that are looked at in full, as many as a run begins with: with fewer a report does not say that all is well."""


@dataclass(frozen=True)
class Coverage:
    """That of one rank."""

    steps: int
    full: int
    """Steps that were looked at in full."""
    unjudged: tuple[str, ...] = ()
    """The rules that need more steps than were looked at."""

    @property
    def enough(self) -> bool:
        """Whether it was so much that nothing found means something."""
        return not self.unjudged and self.full >= min(self.steps, ENOUGH)


class CoverageText(NamedTuple):
    """That of all ranks in words: a sentence each, empty where there is no more to say."""

    looked: str = ""
    """Of how many steps; nothing where it was all."""
    unjudged: str = ""


def told(coverages: Sequence[Coverage]) -> CoverageText:
    """That of all ranks in words."""
    ranks = f" on each of {len(coverages)} ranks" if len(coverages) > 1 else ""
    looked = unjudged = ""
    if any(one.full < one.steps for one in coverages):
        full, steps = _range(one.full for one in coverages), _range(one.steps for one in coverages)
        looked = f"Looked at {full} of {steps} steps in full{ranks}."
    if rules := sorted({rule for one in coverages for rule in one.unjudged}):
        unjudged = f"Too few steps to judge {', '.join(rules)}."
    return CoverageText(looked, unjudged)


def _range(numbers: Iterable[int]) -> str:
    least, *_, most = sorted([*numbers] * 2)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
