"""The losses that compare number by number, with the shapes of what they compare."""

from dataclasses import dataclass
from typing import Any

from ta_lint.events.place import Place

Shape = tuple[Any, ...]
"""Sizes; None for one that is not known. `...` as the first stands for one or more others."""


ELEMENTWISE = frozenset({"huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss"})
REFUSING = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})
"""Losses that compare the sizes and raise."""
LEAST_OF_MAPS = 4


@dataclass(frozen=True, slots=True)
class Compared:
    """Two tensors that a loss compares.

    `how` is the function of `torch.nn.functional`, or `distance` for squares or magnitudes of a difference that are averaged or
    summed, and `mean` for a difference that is averaged as it is.
    """

    place: Place
    how: str
    given: Shape
    target: Shape


def are_pairs(longer: Shape, shorter: Shape) -> bool:
    """Whether `longer` is `shorter` with a one at its end, or for a channel of images, that spreads each over all."""
    batch = shorter[0] if shorter else 1
    if batch == 1 or ... in shorter:
        return False
    if ... in longer:
        return len(shorter) == 1 and longer[-1] == 1
    if len(longer) != len(shorter) + 1 or longer[0] == 1:
        return False
    if longer[-1] == 1 and _are_alike(longer[:-1], shorter):
        return all(
            one == other or 1 in (one, other)
            for one, other in zip(longer[1:], shorter, strict=True)
            if None not in (one, other)
        )
    is_map = len(longer) >= LEAST_OF_MAPS and longer[1] == 1
    return is_map and _are_alike((longer[0], *longer[2:]), shorter)


def _are_alike(one: Shape, other: Shape) -> bool:
    """Whether two shapes are the same, where both are known."""
    return all(size in (None, wanted) or wanted is None for size, wanted in zip(one, other, strict=True))
