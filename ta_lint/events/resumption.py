"""Where a training goes on from a file, and what it goes on without."""

from dataclasses import dataclass, field

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Forgotten:
    """An object of the training that has a state, but not the one that it had when the file was written."""

    role: str
    """`optimizer`, `scheduler` or `scaler`."""
    kind: str
    """Its class."""
    place: Place
    """Where it was built; of one that is given, where it steps."""
    key: str | None = None
    """The key of a checkpoint that has its state; None if no file has it."""
    keeps_rate: bool = False
    """Whether it can only lose its patience, as the optimizer's state has the learning rate."""


@dataclass(slots=True)
class Resumption:
    """A file from which a training goes on."""

    loaded: Place
    saved: Place
    """Where the program makes the checkpoint that such a file holds."""
    lost: list[Forgotten] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Misread:
    """A state that is loaded from a key that no checkpoint of the program has."""

    place: Place
    key: str
    saved: Place
    own: str | None = None
    """The one key of the checkpoint with the state of a model that nothing reads; None where the state is none of a model."""
