"""Loss functions that are replaced by the loss that they compute."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Rebound:
    """A call whose tensor takes the place of what was called, which comes there again. Only the source says so."""

    place: Place
    code: str
    """What is called, as the program writes it."""
    loop: Place | None
    """The loop that comes there again; None of an attribute, which each call of the function meets."""
