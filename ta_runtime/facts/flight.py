"""What a preflight measured on copies of a model, before the first step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Mixing:
    """How far the output of the first sample of a batch changes, in evaluation mode, when all others become copies of it."""

    place: "Place"
    """The line that called the model."""
    model: str
    samples: int
    change: float
    """The largest change of an element, over the largest magnitude in the output."""
    rounding: float
    """So much may come of rounding."""


@dataclass(frozen=True, slots=True)
class Overfitting:
    """What became of the loss of the first batch, as a copy of the model was trained on it alone, without dropout."""

    place: "Place"
    """The line that called the loss, or the model if that computes it."""
    first: float
    lowest: float
    steps: int
    """The most steps that were made at one rate."""
    rates: tuple[float, ...]
    """The rates of Adam that were tried in full."""
    floor: float
    """A loss that is as low as this has nowhere to fall."""


@dataclass(frozen=True, slots=True)
class FirstLoss:
    """The loss of the first batch, where it is known what a guess that knows nothing would have."""

    place: "Place"
    function: str
    value: float
    chance: float


@dataclass(frozen=True, slots=True)
class OneTarget:
    """A loss by classes whose targets are all of one class: in all of the training data, or all tokens of the first batch."""

    place: "Place"
    function: str
    target: int
    count: int


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A weight whose gradient was exactly zero in each step that a copy of the model was trained."""

    place: "Place"
    name: str
    steps: int


@dataclass(frozen=True, slots=True)
class Flight:
    """What the probes measured; None where one could not look."""

    mixing: Mixing | None = None
    overfitting: Overfitting | None = None
    first_losses: tuple[FirstLoss, ...] = ()
    unmoved: tuple[Unmoved, ...] = ()
    one_target: tuple[OneTarget, ...] = ()
