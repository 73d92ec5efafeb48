"""What a run did in training mode and what in evaluation mode."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.facts.loader import Loader
    from ta_runtime.facts.scores import Scores
    from ta_runtime.probes.places import Place

ATTENTION = "scaled_dot_product_attention"


@dataclass(slots=True)
class Inference:
    """Forward passes of one model from one line that train nothing: without gradients, or in evaluation mode.

    Passes are looked at on audited steps, and the first few after `eval()` and of each pass over a loader.
    """

    place: "Place"
    passes: int = 0
    unrecorded: int = 0
    """Passes without gradients."""
    noisy: int = 0
    """Passes without gradients and in training mode, several in a row over different batches, after steps that trained
    this model, or another one of its class, with nothing having set the mode since."""
    dropouts: int = 0
    """Of its last pass in training mode, the dropout layers that dropped."""
    norms: int = 0
    """Of its last pass in training mode, the batch norms that updated their statistics."""
    loaded: int = 0
    """As `noisy`, in a program without an optimizer: of a model with weights that were loaded, and that nothing put into a
    mode."""
    copied: bool = False
    """Whether its model is never trained itself, and of the class of one that is: an average of it, or a target."""
    unsettled: int = 0
    """Passes in training mode of a model with layers that depend on the mode."""
    plain: int = 0
    """Passes in training mode of a model without such layers."""
    idle: bool = False
    """Whether one of these has a dropout of 0."""
    measured: int = 0
    """Losses that were taken without gradients after a pass."""
    loaders: "list[Loader]" = field(default_factory=list)
    """The loaders that handed out a batch last before such a pass."""
    graphs: int = 0
    """Passes in evaluation mode that recorded a graph."""
    used: int = 0
    """How many of these a backward pass went through."""


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

    inferences: list[Inference] = field(default_factory=list)
    droppings: list[Dropping] = field(default_factory=list)
    evaluated: list[Evaluated] = field(default_factory=list)
