"""What puts a model into evaluation mode, and what follows."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class Switch:
    """A line that puts a whole model, which is trained, into evaluation mode."""

    place: Place
    model: str
    """Its class."""
    layers: int
    """How many layers of it do another thing in evaluation mode; 0 where certainly none does."""
    is_seen: bool = True
    """Whether one of these is known; else the model has layers out of sight, and they may all do the same."""
    idle: bool = False
    """Whether one of them would, if its dropout were not 0."""
    evaluated: bool = False
    """Whether a forward pass that trains nothing followed, as in an evaluation."""
    trained: int = 0
    """Optimizer steps after it, with a backward pass in evaluation mode."""
    restored: int = 0
    """How often the model was back in training mode when it was trained next."""
    trained_at: Place | None = None
    """The line that first stepped in evaluation mode."""
