"""Products of the log-probability of an action with what weighs it, as the training code computes them."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Product:
    """A product of a log-probability with another tensor.

    `parameters` are how many parameters that a gradient comes to through the other factor, where that is a difference; None where it
    is something else, or its graph is too large to be seen whole.
    """

    place: Place
    """In a dry run that of the other factor."""
    parameters: int | None
