"""What a loop adds up of each batch, and what that is divided by."""

from dataclasses import dataclass

from ta_lint.events.place import Place

BATCHES = "batches"
SAMPLES = "samples"


@dataclass(slots=True)
class BatchMean:
    """A line that adds up one number of each batch, which does not grow with the batch, such as its mean.

    In a run it is one over passes in which nothing was trained, divided by the number of batches. `mean` is what the code makes of the
    numbers in the last pass, `exact` the same with each batch weighted by its size, `shortest` and `longest` the sizes, and `error` the
    largest relative difference so far.
    """

    place: Place
    passes: int = 0
    batches: int = 0
    mean: float = 0.0
    exact: float = 0.0
    shortest: int = 0
    longest: int = 0
    error: float = 0.0
    per: str = BATCHES
    """What the total is divided by,"""
    divided: Place | None = None
    """where,"""
    code: str = ""
    """and what the total is there."""
    trains: bool = False
    """Whether the loop trains: its numbers come from different weights anyway."""
    of_singles: bool = False
    """Whether a batch certainly has one sample."""
    is_uneven: bool = False
    """Whether the last batch is shorter than the others, or may be: the loader keeps it, and nobody knows how many samples there are."""
