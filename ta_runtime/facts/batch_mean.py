"""Means over the batches of a pass that the training code adds up and divides by the number of batches."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class BatchMean:
    """A line that adds up one number of each batch, over passes in which nothing was trained.

    `mean` is what the code makes of them in the last pass, `exact` the same with each batch weighted by its size, `shortest` and
    `longest` the sizes, and `error` the largest relative difference so far.
    """

    place: "Place"
    passes: int = 0
    batches: int = 0
    mean: float = 0.0
    exact: float = 0.0
    shortest: int = 0
    longest: int = 0
    error: float = 0.0
