"""Models that a wrapper spreads over the processes of a training, as the source shows them. A run has a look of its own."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """A wrapper around a model that had one already, in an earlier pass of a loop or an earlier call of a method for one step."""

    place: Place
    wrapper: str
    model: str
    """As the program writes it."""
    loop: Place | None
    """None of a method."""
    step: str = ""
    """The method."""


@dataclass(frozen=True, slots=True)
class MovedAfterWrap:
    """A move or conversion of a model in `DistributedDataParallel`, which trains afterwards."""

    place: Place
    method: str
    wrapped: Place


@dataclass(frozen=True, slots=True)
class Bypassed:
    """A forward pass of the model inside `DistributedDataParallel`, not through it, that a backward pass goes back through."""

    place: Place
    code: str
    """What is called, as the program writes it."""
    wrapped: Place
