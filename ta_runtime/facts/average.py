"""Averages that are moved a little with every step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class SlowAverage:
    """A line that moves averages, by a hundredth or less of what they differ from the new values.

    Elements of averages in half precision are counted, over pairs of steps that were looked at.
    """

    place: "Place"
    dtype: str = ""
    """Of the first of them in half precision."""
    decay: float = 0.0
    looks: int = 0
    differing: float = 0.0
    """Elements that were clearly another number than the new value."""
    moved: float = 0.0
    """How many of these were no longer what they had been at the look before."""
    precise: int = 0
    """Averages of more than half precision that were met."""
