"""The tensors that modules have as attributes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Attribute:
    """A tensor that a class of the user's assigns to an attribute of a module that runs in training.

    Of several modules of the class the one that was looked at last. Looks are at thorough steps.
    """

    place: "Place"
    """The line in the class that assigns it."""
    name: str
    registered: bool
    """Whether it is a parameter of the module."""
    looks: int = 0
    written: int = 0
    """Looks since which something wrote to it in place."""
    replaced: int = 0
    """Looks since which another tensor took its place."""
    differs: int = 0
    """How often a state was loaded into another model of the class, and that had other values here."""
    device: str = ""
    model_device: str = ""
    """That of the first parameter of the model."""
    learns: bool = False
    """Whether it is a plain tensor, a leaf that has a gradient, and no optimizer holds it."""
    of_lost_parameter: bool = False
    """Whether it is a converted copy of an `nn.Parameter` that no module has and no optimizer holds."""
    is_plain: bool = False
    """Whether any process would make it again: of at most two values, or with equal steps; known on the CPU alone."""
    apart: bool = False
    """Whether it has dimensions, and lies on another device than the model."""
