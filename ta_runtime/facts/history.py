"""What is normal for this run: running medians, so that thresholds are the run's own."""

import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import TYPE_CHECKING

from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place

Norms = Sequence[float | None]

SAMPLED_EVERY = 10
"""Steps from one kept sample of single gradient norms to the next."""
_SAMPLES = 5
LONGEST_STREAK = 3
"""Steps in a row that the most patient check asks for."""
LONGEST_SILENCE = 20
"""Steps without any gradient other than zero that the most patient check asks for."""


SMALL = 1e-6
"""Of a weight, an update: ten times the resolution of float32, so that a thousand in one direction change its third digit.

SageMaker Debugger has 1e-8. AdamW with a rate of 1e-7 changes weights of 0.02 by 5e-6.
"""
SMALL_FOR_ALL = 1e-5
"""That of every weight is below, or gradients vanish on their way, which is another pitfall."""
UPDATES = 3
"""Audited steps before updates are called small."""
SETTLED = 25
"""Steps after which a rate is no longer one that warms up, unless a scheduler of torch has it in hand,"""
LATE = 100
"""and after which no other is, unless it has come down from its highest before: then its warm-up is over."""
NEAR = 0.5
"""Of the highest rate: at one that is below, an update says little about those at the highest."""

LONG = 1000
"""Steps after which a classifier has learnt at least how often each class comes."""
_LATE_LOSSES = 4
FLAT = 0.5
"""Of the highest loss of a run: one that is below is no longer that of guessing."""


class RecentValues:
    """The last values of one number, and what is usual among them. Values that are not finite are left out."""

    def __init__(self, length: int = 200) -> None:
        self.values: deque[float] = deque(maxlen=length)
        self.count = 0
        """How many finite values came in all."""
        self.lowest = math.inf
        self.highest = -math.inf
        self._usual: tuple[int, float, float] | None = None

    def add(self, value: float) -> None:
        if math.isfinite(value):
            self.values.append(value)
            self.count += 1
            self.lowest = min(self.lowest, value)
            self.highest = max(self.highest, value)

    @property
    def usual(self) -> tuple[float, float]:
        """Median and median absolute deviation of the last values, at most 10 values old.

        The deviation is as it is, without the factor 1.4826 that makes it a standard deviation of normal values.

        Raises:
            ValueError: there are no values yet.
        """
        if not self.values:
            raise ValueError("an empty series has no median")
        if self._usual is None or self.count >= self._usual[0] + 10 or self.count < 20:
            middle = median(self.values)
            spread = median(abs(value - middle) for value in self.values)
            self._usual = (self.count, middle, spread)
        return self._usual[1], self._usual[2]


class Silence:
    """What an optimizer has never had since its first step: gradients at all, and for some parameters one but zero.

    Steps are those that were looked at. `zero` counts, by id of the parameter, the steps with a gradient of exactly
    zero for those that had one at the first step and never had another; it empties for good in a healthy run.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.without_gradients = 0
        """Steps, from the first, in which no parameter had a gradient; -1 once one had."""
        self.zero: dict[int, int] = {}

    @property
    def is_long(self) -> bool:
        """Whether it has just become so long that a closer look at the step to come is worth it."""
        return self.steps == LONGEST_SILENCE and LONGEST_SILENCE in self.zero.values()

    def add(self, tensors: Sequence[object], present: Sequence[bool], norms: Norms) -> None:
        if self.without_gradients >= 0:
            self.without_gradients = -1 if any(present) else self.without_gradients + 1
        if not self.steps:
            self.zero = {id(tensor): 0 for tensor, norm in zip(tensors, norms, strict=False) if norm == 0.0}
        self.steps += 1
        if not self.zero:
            return
        for tensor, norm in zip(tensors, norms, strict=False):
            if id(tensor) not in self.zero or norm is None:
                continue
            if norm == 0.0:
                self.zero[id(tensor)] += 1
            else:
                del self.zero[id(tensor)]


class Usage:
    """Which parameters of an optimizer ever had a gradient. Steps are those that were looked at, since its parameters
    were last added to, frozen or unfrozen.

    Objects are told apart by `id`: one that takes the place of another is at worst thought to have been used.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.parameters: frozenset[int] = frozenset()
        self.used: set[int] = set()
        self._present: list[bool] = []

    def add(self, tensors: Sequence[object], present: list[bool]) -> None:
        if len(present) != len(self._present):
            self.steps = 0
            self.parameters = frozenset(map(id, tensors))
            self._present = []
        self.steps += 1
        if present != self._present:
            self._present = present
            pairs = zip(tensors, present, strict=True)
            self.used.update(id(tensor) for tensor, present in pairs if present)


@dataclass(frozen=True, slots=True)
class Unrun:
    """A layer that had not run by an audited step, with what must not run, or have a gradient, until the end."""

    place: "Place"
    name: str
    """As a message names it: a path in backticks."""
    modules: frozenset[int]
    parameters: frozenset[int]
    is_chosen: bool
    """Whether it is one of a list of modules of which others ran."""


class OptimizerHistory:
    """What a session keeps of one optimizer: series of numbers, and ids of its parameters."""

    def __init__(self) -> None:
        self.log_norms = RecentValues()
        """Natural logarithms of the global gradient norms, before clipping."""
        self.losses = RecentValues(length=2000)
        """Those that it stepped on, the mean of its micro-batches."""
        self.loss_steps: deque[int] = deque(maxlen=2000)
        """The steps that these are of."""
        self.first_step: int | None = None
        """The first step that was looked at."""
        self.silence = Silence()
        self.samples: deque[Sequence[float | None]] = deque(maxlen=_SAMPLES)
        """`Gradients.norms` of the last 5 earlier steps whose number is a multiple of 10, the oldest first."""
        self.ratios = RecentValues()
        """Of each audited step, the median over weights of the update's norm over the weight's."""
        self.largest_ratio = 0.0
        """The largest of any weight at any of them."""
        self.usage = Usage()
        self._rate = self._highest_rate = 0.0
        self._asked_for_loss = 0
        self._asked_for_update = False

    def add_norm(self, norm: float | None) -> None:
        if norm is not None and norm > 0:
            self.log_norms.add(math.log(norm))

    def add_loss(self, step: int, loss: float | None) -> None:
        if loss is not None and math.isfinite(loss):
            self.losses.add(loss)
            self.loss_steps.append(step)
            if self.first_step is None:
                self.first_step = step

    def add_rate(self, rate: float | None) -> None:
        """The learning rate of a step; None where it is not known."""
        self._rate = rate or 0.0
        self._highest_rate = max(self._highest_rate, self._rate)

    def stands_still(self, step: int, *, scheduled: bool) -> bool:
        """Whether no update was more than next to nothing, though its rate has done with warming up, if it ever did."""
        falls = NEAR * self._highest_rate <= self._rate < self._highest_rate
        return (
            step >= (LATE if scheduled and not falls else SETTLED)
            and self.ratios.count >= UPDATES
            and self.ratios.highest <= SMALL
            and self.largest_ratio <= SMALL_FOR_ALL
        )

    def wants_update(self, step: int, *, scheduled: bool) -> bool:
        """Whether it is time for the look that says so: asked once, as a short run may have no other from here on."""
        if self._asked_for_update or not self.stands_still(step, scheduled=scheduled):
            return False
        self._asked_for_update = True
        return True

    def late_losses(self, step: int) -> list[float] | None:
        """Those of the last 200 steps, once 1,000 were made; None before that, or if fewer than four were looked at."""
        if self.first_step is None or step - self.first_step < LONG:
            return None
        late = [
            loss
            for at, loss in zip(self.loss_steps, self.losses.values, strict=True)
            if at > step - LONG // 5
        ]
        return late if len(late) >= _LATE_LOSSES else None

    def wants_loss(self, step: int) -> bool:
        """Whether the loss has hardly fallen in a long run, so that a closer look at it is worth it; asked ever more seldom."""
        if step < self._asked_for_loss or (late := self.late_losses(step)) is None:
            return False
        self._asked_for_loss = 2 * step
        return median(late) >= FLAT * self.losses.highest

    def add_gradients(self, step: int, tensors: Sequence[object], present: list[bool], norms: Norms) -> None:
        """Those of its parameters at a step: which have one, and its norm."""
        self.silence.add(tensors, present, norms)
        self.usage.add(tensors, present)
        if step % SAMPLED_EVERY == 0:
            self.samples.append(norms)


class History:
    """What a session keeps: of each optimizer its history, of models what ran.

    A step's own values are added after its checks ran, so that a spike is compared with what came before it.
    """

    def __init__(self) -> None:
        self._optimizers: Register[OptimizerHistory] = Register()
        self.usages: dict[int, Usage] = {}
        """Of every optimizer, by number, also of those that are gone."""
        self.called: set[int] = set()
        """Every module, by id, that ran in a training forward pass of an audited step."""
        self.unrun: dict[int, list[Unrun]] = {}
        """Of each model, by id, what TA500 waits for."""
        self.is_waiting = False
        """Whether a streak has begun that the next steps will end or bear out."""
        self._streaks: dict[Hashable, int] = {}
        self._tallies: dict[Hashable, tuple[int, int]] = {}

    def streak(self, key: Hashable, holds: bool) -> int:
        """How many times in a row something has held, asked once for each audited step; 0 if it does not now."""
        if not holds:
            self._streaks.pop(key, None)
            return 0
        count = self._streaks[key] = self._streaks.get(key, 0) + 1
        self.is_waiting |= count < LONGEST_STREAK
        return count

    def tally(self, key: Hashable, held: int, looks: int) -> tuple[int, int]:
        """How often something has held so far, and how often it was looked at, with what this step adds to both."""
        before, looked = self._tallies.get(key, (0, 0))
        self._tallies[key] = (before + held, looked + looks)
        return self._tallies[key]

    def of(self, optimizer: object) -> OptimizerHistory:
        """That of an optimizer; a new one where there is none."""
        found = self._optimizers.get(optimizer)
        if found is None:
            found = OptimizerHistory()
            self._optimizers.add(optimizer, found)
            self.usages[len(self.usages)] = found.usage
        return found

    def add_ratios(self, ratios: Iterable[tuple[OptimizerHistory, float | None]]) -> None:
        """Those of one step, each with the history of its optimizer."""
        found: dict[int, tuple[OptimizerHistory, list[float]]] = {}
        for history, ratio in ratios:
            if ratio is not None:
                found.setdefault(id(history), (history, []))[1].append(ratio)
        for history, known in found.values():
            history.ratios.add(median_low(known))
            history.largest_ratio = max(history.largest_ratio, *known)
