"""Squared differences that a training minimises, by the graphs of their sides."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Residual:
    """A squared difference of which one side is computed by a network and the other is a target.

    `shared` are how many weights that a gradient comes to through both sides, where the target is data plus a scaled output
    of a network; 0 where only one side has a graph.
    """

    place: Place
    shared: int
    target: Place | None = None
    """The scaled output in the target. Only the source says which it is."""
