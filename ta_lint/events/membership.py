"""Which layers of the models that are trained an optimizer holds."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Membership:
    """A layer of the user's own that ran in training, with all that is inside it, as it was seen last.

    `left_out` counts its parameters that got gradients, new ones, in at least `steps` backward passes, and that no
    optimizer held in any; 0 where anything wrote to one of them.
    """

    place: Place
    """Where it was built."""
    name: str
    """Its path in the model that was called; empty for the model itself."""
    trainable: int
    """How many of its parameters require gradients."""
    held: int
    """How many of these an optimizer of the program holds."""
    is_outermost: bool
    """Whether no optimizer holds anything that is trainable in it, and the same is not true of what is around it."""
    is_fresh: bool
    """Whether the program made it, of layers of torch and of the user, and has loaded no state into it."""
    is_settled: bool = True
    """Whether no later phase of the training may still build an optimizer for it."""
    looks: int = 0
    """Steps at which a run looked at it."""
    with_gradient: int = 0
    """How many of its parameters had a gradient then, whatever it was, at the last look."""
    left_out: int = 0
    steps: int = 0
    gradient: float | None = None
    """The largest L2 norm among the gradients of those that are left out; None where nothing was measured."""
    optimizer: Place | None = None
    """Where one of the optimizers was built that hold parameters of the model; else of one that holds stale ones."""
    stale: int = 0
    """How many parameters some optimizer holds that no module of the program has and that have no gradient."""
