"""Products of the log-probability of an action with what weighs it, as the training code computed them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Product:
    """A product of a log-probability with another tensor.

    `parameters` are how many parameters that a gradient comes to through the other factor, where that is a difference; None where it
    is something else, or its graph is too large to be seen whole.
    """

    place: "Place"
    parameters: int | None
