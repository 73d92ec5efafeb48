"""What the mode does in parts of a model whose parameters are frozen."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class FrozenPart:
    """The frozen parts of models that one line put into training mode, or, where no line did, that one line called.

    A part is a module with parameters of which none requires a gradient, and that is in no other such module. Parts
    whose parameters change all the same, as those of a momentum encoder do, are left out.
    """

    place: Place
    part: str
    """The class of the first of them."""
    called_at: Place
    looks: int = 0
    """Steps that were compared with another one; in a dry run, calls."""
    norms: int = 0
    """Batch norms that moved their statistics between two of them."""
    dropouts: int = 0
    """Dropout layers that dropped, of parts that hold most of their model; a dry run does not look at dropout."""
    still: int = 0
    """Looks at which all layers of a part that depend on the mode were in evaluation mode."""
