"""What went on around the steps of an optimizer, and how its learning rate was scheduled."""

import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ta_runtime.places import Place


class Action(StrEnum):
    """What is done to gradients or weights, in the words of the linter."""

    BACKWARD = "backward"
    CLEAR = "clear"
    CLIP = "clip"
    PASS = "pass"
    """The loader that the next backward pass is fed from begins a new epoch."""
    SKIP = "skip"
    """A gradient scaler found an overflow and left out the step."""
    STEP = "step"
    UNSCALE = "unscale"


class Condition(StrEnum):
    """What lies in `.grad` of an optimizer's parameters."""

    EMPTY = "empty"
    """Nothing, or the zeros of a clearing."""
    FRESH = "fresh"
    """What backward passes have computed since the last clearing."""
    USED = "used"
    """What the last step has used, untouched since."""
    STALE = "stale"
    """What the last step has used, and what backward passes have added to it."""
    UNKNOWN = "unknown"


class Event(NamedTuple):
    """An action, and the user's line of it; `Place("", 1)` of a clearing that was seen only by what it left."""

    action: Action
    place: "Place"
    gradients: Condition = Condition.UNKNOWN
    """What the action found."""
    is_scaled: bool | None = None
    """Whether the gradients, after the action, carry the factor of a gradient scaler; None if that is not known."""
    by_scaler: bool = False
    """Of a step: whether a gradient scaler made it."""
    is_next_batch: bool = False
    """Of a backward pass: whether its loader handed out one batch since the one before."""
    divisor: float | None = None
    """Of a backward pass: by what the mean was divided that it goes back from, 1 if by nothing; None if it is no mean."""


Way = tuple[tuple[Event, int], ...]
"""The events of one round, in order; equal ones in a row are counted."""


@dataclass(slots=True)
class Rounds:
    """What an optimizer went through from each step to the next, by the ways it went and how often it went each.

    A round ends with its `STEP` or `SKIP`. One with too many events is left out, and so are more than 64 different ways.
    """

    optimizer: "weakref.ref[Any]"
    ways: Counter[Way] = field(default_factory=Counter)
    first: Way | None = None
    """The way of the first round; nothing is known of what came before it."""
    pending: Way = ()
    """What came after the last step."""
    kept: int = 0
    """How often gradients that a step had used were measured when a backward pass came to add to them: not zero."""
    emptied: int = 0
    """How often those were zero after all."""
    limits: dict["Place", tuple[float, float]] = field(default_factory=dict)
    """Where scaled gradients were clipped: the limit, and the factor of the scaler at that time."""
    without_update: "Place | None" = None
    """Where a gradient scaler was to make a second step and had not been updated since the first."""
    epoch_is_over: bool = False
    """Whether the loader of the last backward pass has handed out all its batches."""

    def places(self, *actions: Action) -> list["Place"]:
        """The lines of these actions, in the order in which they were first seen."""
        return list(
            dict.fromkeys(event.place for way in self.ways for event, _ in way if event.action in actions)
        )

    def ending(self, place: "Place") -> Iterator[tuple[Way, Event, int]]:
        """The ways that end with a step at a place, with that step and how often."""
        for way, times in self.ways.items():
            if way[-1][0].action is Action.STEP and way[-1][0].place == place:
                yield way, way[-1][0], times

    def steps(self, place: "Place") -> Counter[Condition]:
        """What the steps at a place found, all but the first of the run, before which nothing is known."""
        found: Counter[Condition] = Counter()
        for way, step, times in self.ending(place):
            found[step.gradients] += times - (way == self.first)
        return +found


@dataclass(slots=True)
class Schedule:
    """The calls of `scheduler.step()` at one line, for one learning rate scheduler that was built in this run.

    Rates are of the first parameter group, None where they are tensors.
    """

    place: "Place"
    built: "Place"
    kind: str
    length: int | None
    """For how many of its steps it is laid out, where it says so; None for one that decays without end."""
    counts_batches: bool
    """Whether it is of a kind that is stepped once for each batch."""
    times: int = 0
    before_first: int = 0
    """How many of the calls came before the first step of its optimizer."""
    begins: bool = True
    """Whether neither it nor its optimizer had a past before the first call."""
    has_argument: bool = False
    first_rate: float | None = None
    """The learning rate before the first call."""
    second_rate: float | None = None
    """That after it."""
    rate: float | None = None
    """That after the last call."""
    optimizer_steps: int = 0
    """Of its optimizer, up to the last call."""
    passes: int = 0
    """Over the loader that handed out the last batch before the first call, from then to the last call."""
    batches: int = 0
    """Of that loader, in that time."""


@dataclass(slots=True)
class Loop:
    """The training loops of a run, as its optimizers and schedulers went through them."""

    rounds: list[Rounds] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
