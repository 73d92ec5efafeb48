"""Loops that train on fewer batches than a loader has."""

from dataclasses import dataclass

from ta_lint.events.place import Place

A_FEW = 100
"""Batches: a stop after more of them may be intended."""


@dataclass(slots=True)
class Cut:
    """A loop that may train on fewer batches than there are: it stops at a literal number, or counts batches that it rounds down."""

    place: Place
    """What says so: the literal number, or the head of the loop."""
    loop: Place
    limit: int | None = None
    """The literal number of batches; None where it is rounded down, or one batch is left out."""
    recurs: bool = False
    """Whether each epoch ends so, two at least; or all of the training does, as the source alone can say."""
    at_end: bool = False
    """Whether it is the whole training that is cut, in its last epoch."""
    whole: int = 0
    """Epochs that take all batches all the same."""
    batches: int | None = None
    """Those of an epoch,"""
    length: int | None = None
    """and those of the loader; None where they are not known."""
