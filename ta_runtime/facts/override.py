"""What a class does whenever its modules are put into training mode."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Override:
    """An override of `train()`, of a module that is trained and on which it was never called."""

    place: "Place"
    """The line that first stepped an optimizer with gradients of this module."""
    defined: "Place"
    model: str
    """The class."""
    parameters: int
    """How many parameters that had a gradient the override would have frozen."""
    layers: int
    """How many layers that do another thing in evaluation mode it would have put there."""
