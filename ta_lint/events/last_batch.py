"""Numbers that only the last batch has, where they stand for all of them."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class LastBatch:
    """A use of a number after the loop over the batches that has computed it anew for each."""

    place: Place
    code: str
    """What is used, as it is written."""
    loop: Place
    decides: bool = False
    """Whether something is decided by it: it is compared, or a schedule gets it."""
    is_shared: bool = False
    """Whether it is divided by the number of all batches or samples."""
