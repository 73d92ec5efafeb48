"""Numbers that only the last batch has, where they stand for all of them."""

from dataclasses import dataclass
from enum import Enum, auto

from ta_lint.events.place import Place


class Purpose(Enum):
    """What becomes of such a number."""

    DECIDES = auto()
    """It is compared with that of another epoch, or a schedule gets it."""
    SHARED = auto()
    """It is divided by the number of all batches or samples."""
    TOLD = auto()
    """It is printed, logged, returned or collected."""


@dataclass(frozen=True, slots=True)
class LastBatch:
    """A use of a number after the loop over the batches that has computed it anew for each."""

    place: Place
    code: str
    """What is used, as it is written."""
    loop: Place
    use: Purpose
