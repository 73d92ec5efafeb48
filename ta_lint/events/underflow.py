"""How much of a gradient fell out of the range of float16."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ta_lint.events.place import Place


@dataclass(slots=True)
class Underflow:
    """The gradients, after a backward pass, of parameters whose layers computed in float16, from samples of them.

    `place` is the line that called `backward`. `zeros` is the share of elements that are zero, and `tiny` the share of the
    others that are below the smallest normal number of float16, where digits are lost; None if there are no others.
    """

    place: Place
    by_scaler: bool
    """Whether a gradient scaler makes the step that uses them."""
    elements: int
    zeros: float | None = None
    tiny: float | None = None


class HasUnderflows(Protocol):
    """An audited step of a run, whose history counts in how many of them in a row something shows."""

    @property
    def underflows(self) -> Sequence[Underflow]: ...

    @property
    def gradients(self) -> Sequence[Any]: ...

    @property
    def history(self) -> Any: ...
