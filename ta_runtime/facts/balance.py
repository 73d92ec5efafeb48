"""Losses that are the sum of a mean and of a sum, as the training code went back from them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Balance:
    """A criterion whose mean is added to the sum over what a network computed, over the looks of a run.

    `ratio` is that of the rest of the loss to the mean at the last look; `in_a_row` are the looks one after another in which it
    was above the limit, at their most, and `above` how many were in all.
    """

    place: "Place"
    looks: int = 0
    above: int = 0
    in_a_row: int = 0
    ratio: float = 0.0
    _row: int = 0

    def look(self, ratio: float, limit: float) -> None:
        self.looks += 1
        self.ratio = ratio
        self._row = self._row + 1 if ratio > limit else 0
        self.above += ratio > limit
        self.in_a_row = max(self.in_a_row, self._row)
