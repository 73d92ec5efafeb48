"""Gradients of several batches that one step uses together."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A line whose backward passes, each for another batch, or for another part of one, add up to one step."""

    place: Place
    batches: int | None
    """Those of a step, None if nobody knows how many these are."""
    whole: int = 0
    """The steps for which the losses were means that nothing had divided,"""
    divided: int = 0
    """and those for which they were divided by the number of batches."""
    is_normalised: bool = False
    """Whether the optimizer divides each gradient by its size, and nothing clips it before. Only the source says so."""
    related: tuple[tuple[Place, str], ...] = ()
