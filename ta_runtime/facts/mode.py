"""What a run did in training mode and what in evaluation mode."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.facts.scores import Scores
    from ta_runtime.probes.places import Place

ATTENTION = "scaled_dot_product_attention"


@dataclass(slots=True)
class Dropping:
    """Calls of a function of `torch.nn.functional` that drops, from one line in the code of a module."""

    place: "Place"
    function: str
    told: bool
    """Whether the call says if it is for training."""
    p: float = 0.0
    """The largest probability that was given."""
    evaluating: int = 0
    """Calls while the module was in evaluation mode."""
    dropped: int = 0
    """How many of these dropped something."""
    training: int = 0
    """Calls while the module was in training mode, with a probability above 0."""
    kept: int = 0
    """How many of these dropped nothing."""


@dataclass(slots=True)
class Evaluated:
    """A line that takes the cross entropy without gradients, with what its first calls that were looked at were given."""

    place: "Place"
    scores: "list[Scores]" = field(default_factory=list)
    """Nothing says which function made them: there is no graph."""


@dataclass(slots=True)
class ModeHistory:
    """What ran in which mode, in the order in which it was first seen."""

    droppings: list[Dropping] = field(default_factory=list)
    evaluated: list[Evaluated] = field(default_factory=list)
