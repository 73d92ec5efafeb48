"""What lives from pass to pass of a loop, and keeps the graphs of more and more passes alive."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Growth:
    """A line that adds the graph of each pass to what holds those of earlier ones. Only the source says which."""

    place: Place
    code: str
    """The expression that adds it."""
    backwards: tuple[Place, ...]
    """The backward passes that have gone through the added graphs."""
    freed: bool
    """Whether a backward pass has freed them, so that nobody can go through them again."""
    of_parameters: bool
    """Whether the program computes them from parameters, and no layer does, in a pass that steps an optimizer, or in each call of a function."""
    renewed: bool
    """Whether a loop around starts anew with nothing, while the training goes on."""
    loop: Place | None = None
    """The innermost loop in which the added graphs start, such as one over parameters."""
