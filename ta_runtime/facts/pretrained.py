"""Models that `from_pretrained` returned, and that are trained."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Pretrained:
    """A model of transformers with weights that were loaded, most of which are trained, and with layers that depend on the mode.

    Looks are at audited steps in which it had gradients, and before the training code puts it into evaluation mode itself.
    """

    place: "Place"
    """The line that loaded it."""
    model: str
    """Its class."""
    layers: int
    """Its dropout layers that drop in training mode, and its norms with statistics."""
    called_at: "Place"
    looks: int = 0
    still: int = 0
    """Looks at which all of these layers were in evaluation mode."""
    steps: int = 0
    """Optimizer steps up to the last look."""
