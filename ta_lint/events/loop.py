"""What happens around the steps of each optimizer, and how its learning rate is scheduled."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from ta_lint.core.protocol import Action
from ta_lint.events.place import Place


class Condition(StrEnum):
    """What lies in `.grad` of an optimizer's parameters."""

    EMPTY = "empty"
    """Nothing, or the zeros that clearing leaves."""
    FRESH = "fresh"
    """What backward passes have computed since gradients were last cleared."""
    USED = "used"
    """What the last step used, unchanged since."""
    STALE = "stale"
    """What the last step used, and what backward passes have added to it since."""
    UNKNOWN = "unknown"


class ObservedAction(NamedTuple):
    """An action that a run took, and the user's line that took it.

    The line is `places.NOWHERE` where gradients turn out to be cleared and no call that clears them was seen.
    """

    action: Action
    place: Place
    gradients: Condition = Condition.UNKNOWN
    """The gradients before the action."""
    is_scaled: bool | None = None
    """Whether the gradients after the action still hold the factor of a gradient scaler; None if unknown."""
    by_scaler: bool = False
    """Of a step: whether it went through a gradient scaler."""
    is_next_batch: bool = False
    """Of a backward pass: whether its loader has handed out exactly one batch since the previous backward pass."""
    divisor: float | None = None
    """Of a backward pass: what its loss, a mean, was divided by, 1 if by nothing; None if the loss is no mean."""
    is_chosen: bool | None = None
    """Of a step on gradients that a scaler has unscaled: whether a condition after that decides whether it happens. A run sees only that it
    did: None.
    """


StepPattern = tuple[tuple[ObservedAction, int], ...]
"""The actions up to a `STEP` or `SKIP`, in order, each with how often it comes in a row."""


@dataclass(slots=True)
class LoopHistory:
    """What happened to an optimizer from each step to the next: the patterns, and how often each occurred.

    Steps with too many actions are left out, and so is each pattern after the first 64.
    """

    loop: Place | None = None
    """The outermost loop around these steps, None where a run does not know it: then it has all steps of the optimizer."""
    patterns: Counter[StepPattern] = field(default_factory=Counter)
    first: StepPattern | None = None
    """The pattern that ended with the first step; what came before it is unknown."""
    pending: StepPattern = ()
    """The actions after the last step."""
    kept: int = 0
    """How often used gradients were measured just before a backward pass added to them, and were not zero."""
    emptied: int = 0
    """How often they were zero."""
    limits: dict[Place, tuple[float | None, float]] = field(default_factory=dict)
    """Where scaled gradients were clipped: the limit, None if a dry run does not know it, and the factor of the scaler at that moment. A limit
    that a dry run knows to be a multiple of the factor is left out."""
    without_update: Place | None = None
    """Where a gradient scaler stepped the same optimizer twice without an update in between."""
    chunked: int = 0
    """Audited steps of several forward passes in training, each over another part of one tensor, such as a batch."""
    scaler: bool | None = None
    """Whether a gradient scaler scaled a loss, False if those that were asked to are disabled; None without a scaler."""
    epoch_is_over: bool = False
    """Whether the loader of the last backward pass has handed out all batches of its epoch."""
    _endings: dict[Place, list[StepPattern]] = field(default_factory=dict, compare=False, repr=False)
    """The patterns that end with a step, by its place,"""
    _sorted: int = field(default=0, compare=False, repr=False)
    """of the first so many."""

    def places(self, *actions: Action) -> list[Place]:
        """The lines that took these actions, in the order in which they were first seen."""
        return list(
            dict.fromkeys(
                event.place for pattern in self.patterns for event, _ in pattern if event.action in actions
            )
        )

    def ending(self, place: Place) -> Iterator[tuple[StepPattern, ObservedAction, int]]:
        """The patterns that end with a step at a place, each with that step and how often it occurred."""
        for pattern in islice(self.patterns, self._sorted, None):
            if pattern[-1][0].action is Action.STEP:
                self._endings.setdefault(pattern[-1][0].place, []).append(pattern)
        self._sorted = len(self.patterns)
        for pattern in self._endings.get(place, ()):
            yield pattern, pattern[-1][0], self.patterns[pattern]

    def steps(self, place: Place) -> Counter[Condition]:
        """The gradients that the steps at a place found, without the first step of the run: what came before it is unknown."""
        found: Counter[Condition] = Counter()
        for pattern, step, times in self.ending(place):
            found[step.gradients] += times - (pattern == self.first)
        return +found


class Unit(StrEnum):
    """What a scheduler steps for, and what the steps that it is made for are."""

    BATCH = "batches"
    STEP = "optimizer steps"
    """Of several batches each, if it steps for them."""
    EPOCH = "epochs"


@dataclass(slots=True)
class SchedulerCalls:
    """The calls of `scheduler.step()` at one line, for one learning rate scheduler built in this run.

    Rates are those of the first parameter group; None where they are tensors.
    """

    place: Place
    built: Place
    kind: str
    length: int | None
    """How many of its steps it is made for; None where it does not say, or decays without end."""
    counts_batches: bool
    """Whether it is of a class that steps once per batch."""
    steps_per: Unit | None = None
    """What it steps for, once each; None where nobody knows, or it fits nothing."""
    length_in: Unit | None = None
    """What its length counts. A run knows it if it is as long as all of these together."""
    is_of_other: bool = False
    """Whether its length counts the batches of a loader that nothing trains on. Only the source says so."""
    shared: Place | None = None
    """Where processes get their shares of the batches that its length counts before that, times the number of processes. Only the source
    says so."""
    times: int = 0
    before_first: int | None = 0
    """How many of the calls came before its optimizer's first step; None if nobody knows."""
    first: Place | None = None
    """Where its optimizer made that step, None if unknown."""
    begins: bool = True
    """Whether it and its optimizer start from nothing, and not from a checkpoint, at the first call."""
    has_argument: bool = False
    first_rate: float | None = None
    """The learning rate before the first call."""
    second_rate: float | None = None
    """The learning rate after the first call."""
    rate: float | None = None
    """The learning rate after the last call."""
    left: float | None = None
    """Of one that decays without end: the share of the first learning rate that is left then. A dry run takes the least batches that a training has."""
    optimizer_steps: int = 0
    """The steps of its optimizer up to the last call."""
    passes: int = 0
    """The passes over its loader, which handed out the batch before the first call, from then to the last call."""
    batches: int = 0
    """The batches of that loader in the same time."""
    skipped: int = 0
    """How many of the calls came after a step that a scaler left out, without another since the call before."""
    rising: int = 0
    """How many of the calls raised the rate, as in a warm-up."""
    skipped_rising: int = 0
    """How many did both."""


@dataclass(slots=True, eq=False)
class Stepped:
    """An optimizer that was built in this run, and how often it stepped."""

    built: Place
    kind: str
    steps: int = 0
    others: int = 0
    """The steps of other optimizers after it was first seen."""
    cleared: int = 0
    """How often gradients of its parameters were cleared, up to its first step."""
    had_gradients: bool = False
    """Whether one of its parameters was seen with a gradient, up to its first step."""
    shares: bool = False
    """Whether another optimizer that steps holds one of its parameters."""
    passes: int = 0
    """The passes over the loader that handed out the batch of its first step, from then to its last step; 0 without one."""
    at_zero: int = 0
    """The most steps in a row at which the learning rates of all its groups were 0."""


@dataclass(slots=True, eq=False)
class Scheduled:
    """A learning rate scheduler that was built in this run, and how often it stepped after that."""

    built: Place
    kind: str
    optimizer: Stepped
    steps: int = 0
    length: int | None = None
    """The steps after which the rate of a `CosineAnnealingLR` climbs again."""
    is_part: bool = False
    """Whether another scheduler holds it, and steps it when its turn comes."""
    is_replaced: bool = False
    """Whether another scheduler steps for its optimizer, and nothing holds this one any more. A dry run does not know what holds it."""


@dataclass(slots=True)
class Loop:
    """What a run did to its optimizers and schedulers."""

    histories: list[LoopHistory] = field(default_factory=list)
    schedules: list[SchedulerCalls] = field(default_factory=list)
    optimizers: list[Stepped] = field(default_factory=list)
    schedulers: list[Scheduled] = field(default_factory=list)
