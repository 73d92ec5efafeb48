"""How often the rewards of a group were all the same, as a trainer of TRL logs it."""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place

_ENTRIES = 64
"""Entries that are kept, the latest."""


@dataclass(slots=True)
class RewardSpread:
    """What one training has logged, at the line that began it."""

    place: "Place"
    trainer: str = ""
    """Its class."""
    step: int = 0
    """The step of the last entry."""
    entries: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_ENTRIES))
    """How many steps an entry speaks of, and the share of groups without spread in them."""

    def add(self, step: int, share: float) -> None:
        if step > self.step:
            self.entries.append((step - self.step, share))
        self.step = step

    def over(self, steps: int) -> tuple[int, float]:
        """The mean share in the last steps, of as few entries as have so many, and how many steps those have."""
        seen, total = 0, 0.0
        for count, share in reversed(self.entries):
            if seen >= steps:
                break
            seen += count
            total += count * share
        return seen, total / max(seen, 1)
