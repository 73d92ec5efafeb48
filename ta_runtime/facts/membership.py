"""Which layers of the models that are trained an optimizer holds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Membership:
    """A layer of the user's own that ran in training, with all that is inside it, as it was looked at last.

    `left_out` counts its parameters that got gradients, new ones, in at least `steps` thorough steps, and that no
    optimizer held in any; 0 where anything wrote to one of them. `gradient` is the largest L2 norm among those.
    """

    place: "Place"
    name: str
    trainable: int
    """How many of its parameters require gradients."""
    held: int
    """How many of these an optimizer of the process holds."""
    is_outermost: bool
    """Whether no optimizer holds anything that is trainable in it, and the same is not true of what is around it."""
    is_fresh: bool
    """Whether this process made it, of layers of torch and of the user, and has loaded no state into it."""
    looks: int = 0
    """Thorough steps at which it was looked at."""
    with_gradient: int = 0
    """How many of its parameters had a gradient then, whatever it was, at the last look."""
    left_out: int = 0
    steps: int = 0
    gradient: float = 0.0
    optimizer: "Place | None" = None
    """Where one of the optimizers was built that hold parameters of the model; else of one that holds stale ones."""
    stale: int = 0
    """How many parameters some optimizer holds that no module of the process has and that have no gradient."""
