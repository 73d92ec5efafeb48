"""TA435: steps leave nearly all elements of half-precision weights unchanged, because they round to nothing.

A run counts the elements. The source shows the learning rate alone: a small one moves common weights by less than half a unit in the last
place.
"""

from collections.abc import Iterator
from typing import Protocol

from ta_lint.events.half_updates import HalfUpdate
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = ("lr",)
AROUND = (("half", "bfloat16", "float16"),)

FASTEST = 1e-4
"""The learning rate up to which the source alone says so: Adam moves a weight by about the rate, and half a unit in the last place of a weight
of 0.05 in bfloat16 is 1.2e-4."""
STEPS = 3
"""Looks one after another: the first steps of a warm-up pass."""
FEW = 0.5


class HasHalfUpdates(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    @property
    def half_updates(self) -> list[HalfUpdate]:
        """What was done to weights in half precision, by each optimizer."""
        ...


def check_step(step: HasHalfUpdates) -> Iterator[Said]:
    for update in step.half_updates:
        numbers = {"learning rate": update.rate}
        if update.stayed is not None:
            numbers["unchanged"] = float(f"{update.stayed:.3g}")
        if update.looks >= STEPS or (update.stayed is None and update.rate <= FASTEST):
            message = "updates of half-precision weights are lost to rounding: keep the weights in float32"
            yield Suspicion(update.place, message, numbers)
        elif update.stayed is not None and update.stayed < FEW:
            because = f"a step changes {1 - update.stayed:.0%} of the elements in half precision"
            yield Refutation(update.place, because, numbers, of_data=True)
