"""Which steps are looked at, and how closely: by a budget of time, or by a fixed period."""

import math
from collections import deque
from enum import IntEnum
from random import Random
from statistics import median
from typing import Protocol


class Look(IntEnum):
    """How closely a step is looked at."""

    COUNT = 0
    """It is counted; what the loop does may be noted in Python."""
    GRADIENTS = 1
    """The norms of its gradients and its loss are read."""
    FULL = 2
    """It is audited."""


class StepSchedule(Protocol):
    """Says how to look at the steps of a run, in order; what they cost it is told when they are over."""

    def look(self, index: int) -> Look:
        """How closely to look at a step."""

    def following(self, index: int) -> float:
        """The first step from this one on about which there is more to say than that it is counted."""

    def over(self, index: int, look: Look, seconds: float | None, own: float) -> None:
        """A step is over that was watched: how long it took, if that is known, and how much of it was ours."""

    def counted(self, steps: int, seconds: float) -> None:
        """So many steps took so long in which nothing of ours ran."""

    def suspect(self) -> None:
        """Something was found: the next steps are worth more."""


class Period:
    """A fixed schedule: the same steps in each run, whatever they cost."""

    def __init__(self, full: int, gradients: int) -> None:
        """Look at each so-manieth step in full, and at the gradients of each so-manieth; 0: at none."""
        self._full, self._gradients = full, gradients

    def look(self, index: int) -> Look:
        if self._full and index % self._full == 0:
            return Look.FULL
        return Look.GRADIENTS if self._gradients and index % self._gradients == 0 else Look.COUNT

    def following(self, index: int) -> float:
        return min(
            -(-index // every) * every if every else math.inf for every in (self._full, self._gradients)
        )

    def over(self, index: int, look: Look, seconds: float | None, own: float) -> None:
        """Nothing depends on it."""

    def counted(self, steps: int, seconds: float) -> None:
        """Nor on this."""

    def suspect(self) -> None:
        """Nor on this: the session looks at the next steps by itself."""


FIRST = 4
"""The first steps, which are looked at in full."""
EARLY = 64
"""The first steps, of which gradients are read at least: the most patient check asks for 50."""
_BURST = 3
"""Steps in a row that are looked at in full."""
_APART = 16
"""Steps, at least, from one burst to the next."""
_PLAIN = 8
"""Steps after a burst that are but counted, to know what a plain step takes."""
_KEPT = 15
"""Durations that are remembered of each look, to take the median of."""


class Budget:
    """Looks at the first steps, and then at as many as a share of the time of the run allows.

    A look costs what of ours was measured in the step, or what a step that is looked at takes longer than a plain one, if
    that is more: on an accelerator it is the only sign of work that nobody waits for. The steps that are looked at come in
    bursts, at offsets that are drawn, so that what recurs with a period is met at some time.
    """

    def __init__(self, share: float, start: int = 0, *, gradients: int | None = None, seed: int = 0) -> None:
        """`share` of the time, such as 0.03; the first step has the number `start`.

        With `gradients` those of each so-manieth step are read, whatever it costs, and of no other that is not audited.
        """
        self._share = share
        self._gradients = gradients
        self._first, self._early = start + FIRST, start + EARLY
        self._random = Random(seed)  # of its own: the run draws from the global one
        self._next = start
        self._calm = self._early + _PLAIN
        """Steps before this one are plain, after the first ones or a burst."""
        self._burst: int | None = None
        """Where the next burst begins; None while the budget allows none."""
        self._suspects = False
        self.elapsed = self.spent = 0.0
        """Seconds of the run so far, and those of them that looking took."""
        self._seconds: dict[Look, deque[float]] = {look: deque(maxlen=_KEPT) for look in Look}
        self._own: dict[Look, deque[float]] = {look: deque(maxlen=_KEPT) for look in Look}

    # -- asked ------------------------------------------------------------------------------------------------

    def look(self, index: int) -> Look:
        if index < self._first:
            return Look.FULL
        if self._burst is not None and self._burst <= index < self._burst + _BURST:
            return Look.FULL
        return Look.GRADIENTS if self._reads_at(index) else Look.COUNT

    def following(self, index: int) -> float:
        if self.look(index) is not Look.COUNT:
            return index
        if index < self._calm and (self._reads or self._burst is None):
            return self._calm
        due = math.inf if self._burst is None else self._burst
        return min(due, -(-index // self._gradients) * self._gradients) if self._gradients else due

    # -- told -------------------------------------------------------------------------------------------------

    def over(self, index: int, look: Look, seconds: float | None, own: float) -> None:
        self._own[look].append(own)
        if seconds is not None:
            self.elapsed += seconds
            self._seconds[look].append(seconds - own if look is Look.COUNT else seconds)
        self.spent += max(own, self.cost(look))
        self._plan(index + 1)

    def counted(self, steps: int, seconds: float) -> None:
        if steps:
            self.elapsed += seconds
            self._seconds[Look.COUNT].append(seconds / steps)
            self._plan(self._next + steps)

    def suspect(self) -> None:
        self._suspects = True

    # -- what a look costs ------------------------------------------------------------------------------------

    @property
    def plain(self) -> float | None:
        """Seconds of a step that is not looked at; None as long as there was none."""
        taken = self._seconds[Look.COUNT]
        return median(taken) if taken else None

    def cost(self, look: Look) -> float:
        """Seconds that a look adds to a step."""
        own, taken, plain = self._own[look], self._seconds[look], self.plain
        longer = median(taken) - plain if look is not Look.COUNT and taken and plain is not None else 0.0
        return max(median(own) if own else 0.0, longer)

    def _reads_at(self, index: int) -> bool:
        if self._gradients is not None:
            return self._gradients > 0 and index % self._gradients == 0
        return index < self._early or (index >= self._calm and self._reads)

    @property
    def _reads(self) -> bool:
        """Whether the gradients of each step can be read for half of the budget."""
        if self._gradients is not None:
            return self._gradients == 1
        return self.plain is not None and 2 * self.cost(Look.GRADIENTS) <= self._share * self.plain

    # -- planning ---------------------------------------------------------------------------------------------

    def _plan(self, index: int) -> None:
        """The next step is this one: say when the next burst begins, if that is not known."""
        self._next = index
        burst, plain = self._burst, self.plain
        if plain is None or index < self._early:
            return
        price = _BURST * self.cost(Look.FULL) + 2 * self.cost(Look.GRADIENTS)
        lacks = max(price + self.spent - self._share * self.elapsed, 0.0)
        if burst is not None:
            if index < burst or (index == burst and not lacks) or burst < index < burst + _BURST:
                return
            if index > burst:
                self._calm = index + _PLAIN
        earned = self._share * plain - (self.cost(Look.GRADIENTS) if self._reads else 0.0)
        if earned <= 0:
            self._burst = None
            return
        waits = max(_APART, math.ceil(lacks / earned))
        self._burst = index + waits + (0 if self._suspects else self._random.randrange(waits // 2 + 1))
        self._suspects = False
