"""Forward passes that train nothing: in which mode, and whether they record a graph."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class Inference:
    """Forward passes of one model from one line that train nothing: without gradients, or in evaluation mode.

    A run looks at passes on audited steps, and at the first few after `eval()` and of each pass over a loader.
    """

    place: Place
    passes: int = 0
    unrecorded: int = 0
    """Passes without gradients."""
    noisy: int = 0
    """Passes without gradients and in training mode, several in a row over different batches, after steps that trained
    this model, or another one of its class, with nothing having set the mode since. In a dry run those of an evaluation, which may record
    gradients if it reads numbers."""
    shown: int = 0
    """As `noisy`, of passes whose outputs are only looked at: printed, logged or saved. A run does not know it."""
    dropouts: int = 0
    """Of its last pass in training mode, the dropout layers that dropped."""
    norms: int = 0
    """Of its last pass in training mode, the batch norms that updated their statistics."""
    is_told: bool = False
    """Whether the program puts the model into training mode where it trains it, so that the mode matters to it, whatever its layers are.
    Only a dry run needs it: a run sees the layers."""
    is_guessed: bool = False
    """Whether the model stands for one that nobody has seen."""
    loaded: int = 0
    """As `noisy`, in a program without an optimizer: of a model with weights that were loaded, and that nothing put into a
    mode. In a dry run they may record gradients if something is read or compared."""
    copied: bool = False
    """Whether its model is never trained itself, and of the class of one that is: an average of it, or a target."""
    unsettled: int = 0
    """Passes in training mode of a model with layers that depend on the mode."""
    plain: int = 0
    """Passes in training mode of a model without such layers."""
    idle: bool = False
    """Whether one of these has a dropout of 0."""
    measured: int = 0
    """Losses that were taken without gradients after a pass, or, in a dry run, passes whose outputs are compared with something."""
    is_held_out: bool = False
    """Whether the batches come from loaders that no step trained on. A dry run does not know it."""
    graphs: int = 0
    """Passes in evaluation mode that recorded a graph; in a dry run those in any mode of which something is read and no part is left to others."""
    switched: Place | None = None
    """Where the model is put into evaluation mode before; a run does not say it."""
    used: int = 0
    """How many of these a backward pass went through, for an input or for parameters that an optimizer steps."""
    trained: Place | None = None
    """Where the model is trained before; a run does not say it."""
