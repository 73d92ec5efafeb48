"""Draws of whole numbers by which the training code then reads a table, such as the timesteps of a diffusion."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Timesteps:
    """A line that calls `torch.randint`, and the table of numbers that it reads by what was drawn.

    `end` is the upper end, which is left out, and `entries` is how many the longest such table has. `looks` are the draws that were
    seen to read one; `others` are reads of such a table by other numbers than those drawn, such as `t + 1`.
    """

    place: "Place"
    end: int
    entries: int = 0
    looks: int = 0
    others: int = 0
