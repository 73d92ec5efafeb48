"""Batches at the end of an epoch that are too few for a step."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Leftover:
    """A line that decides when an optimizer steps, once for several batches; of a run the step itself."""

    place: Place
    usual: int | None
    """The batches that most steps add up, None if nobody knows how many these are."""
    left: int | None
    """The most batches at the end of an epoch that got no step in it, None if nobody knows how many."""
    related: tuple[tuple[Place, str], ...] = ()
