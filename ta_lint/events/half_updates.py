"""What steps do to weights in half precision."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class HalfUpdate:
    """An optimizer of torch that steps weights in half precision; `place` built it.

    A run counts the elements of these weights that a step leaves as they were: `stayed` is their share, `looks` how many looks in a row found
    at least `MOST`. In a dry run nobody counts.
    """

    place: Place
    rate: float
    """The learning rate."""
    stayed: float | None = None
    looks: int = 0


MOST = 0.8
"""The share that may stay unchanged: weights of dead units have no gradient."""
