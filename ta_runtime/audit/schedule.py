"""Which steps are looked at, and how closely: by a budget of time, by a fixed period, or as another run did."""

import json
import math
from bisect import bisect_right
from collections import deque
from enum import IntEnum
from pathlib import Path
from random import Random
from statistics import median
from typing import Protocol

from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.files import write_atomically


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
YOUNG = 300
"""The first steps, which are looked at more closely than the budget allows where a look is in proportion to the step: a
short run costs little, and what goes wrong in it once is seen once or never."""
RECORDED, OF_RANKS = 100, 1000
"""From one step to the next that a recorded run, and each of several ranks, looks at in full once it is no longer young."""
_YOUNG_EVERY = 20


class Comparable:
    """The same steps in each run of a script, whatever they cost: densely among the first, then each so-manieth.

    For runs that are compared step by step, and for ranks, which would measure different times.
    """

    def __init__(self, every: int, gradients: int, start: int = 0) -> None:
        """As `Period`; the first step has the number `start`."""
        self._first, self._young = start + FIRST, start + YOUNG
        self._early, self._late = Period(_YOUNG_EVERY, gradients), Period(every, gradients)

    def look(self, index: int) -> Look:
        if index < self._first:
            return Look.FULL
        return (self._early if index < self._young else self._late).look(index)

    def following(self, index: int) -> float:
        if index < self._first:
            return index
        soon = self._early.following(index)
        return soon if soon < self._young else self._late.following(max(index, self._young))

    def over(self, index: int, look: Look, seconds: float | None, own: float) -> None:
        """Nothing depends on it."""

    def counted(self, steps: int, seconds: float) -> None:
        """Nor on this."""

    def suspect(self) -> None:
        """Nor on this: the session looks at the next steps by itself."""


class Looked:
    """The steps of a run that were looked at: a schedule, once they are known."""

    def __init__(self, spans: list[tuple[int, int, Look]] | None = None) -> None:
        """`spans` are first step, last step and look, in order."""
        self._spans = spans or []

    def add(self, index: int, look: Look) -> None:
        """A later step than those so far was looked at in this way."""
        if look is Look.COUNT:
            return
        if self._spans:
            first, last, same = self._spans[-1]
            if (last, same) == (index - 1, look):
                self._spans[-1] = (first, index, look)
                return
        self._spans.append((index, index, look))

    def save(self, path: Path) -> None:
        """Write the steps into a file of JSON, whole or not at all.

        Raises:
            UsageError: it cannot be written.
        """
        spans = [[first, last, look.name.lower()] for first, last, look in self._spans]
        write_atomically(path, json.dumps({"ta-runtime schedule": 1, "steps": spans}) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Looked":
        """What `save` wrote.

        Raises:
            UsageError: the file cannot be read, or holds something else.
        """
        try:
            spans = json.loads(path.read_text("utf-8"))["steps"]
            read = [(int(first), int(last), Look[look.upper()]) for first, last, look in spans]
        except OSError as error:
            raise UsageError(f"schedule: {path} cannot be read: {oneline(error)}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"schedule: {path} was not written by `--save-schedule`") from error
        ends = [end for first, last, _ in read for end in (first, last)]
        if ends != sorted(ends):
            raise UsageError(f"schedule: the steps in {path} are not in order")
        return cls(read)

    def look(self, index: int) -> Look:
        place = bisect_right(self._spans, index, key=lambda span: span[0]) - 1
        return self._spans[place][2] if place >= 0 and index <= self._spans[place][1] else Look.COUNT

    def following(self, index: int) -> float:
        place = bisect_right(self._spans, index, key=lambda span: span[0])
        if place and index <= self._spans[place - 1][1]:
            return index
        return self._spans[place][0] if place < len(self._spans) else math.inf

    def over(self, index: int, look: Look, seconds: float | None, own: float) -> None:
        """Nothing depends on it."""

    def counted(self, steps: int, seconds: float) -> None:
        """Nor on this."""

    def suspect(self) -> None:
        """Nor on this: the steps are those of the other run."""


_READ_PER_STEP = 0.8
"""In proportion: reading gradients takes less time than the step itself,"""
_FULL_PER_STEP = 8.0
"""and looking in full no longer than so many steps."""
_YOUNG_APART = 16
"""Steps, about, from one burst to the next among these."""
_LATER_APART, _LATER_PER_STEP = 500, 2.0
"""The same of later steps, whatever is still to be paid back, where a full look takes no longer than so many steps."""
_READ_APART = 50
"""Steps from one whose gradients are read to the next, at most, where reading them is in proportion."""
_BURST = 3
"""Steps in a row that are looked at in full, where a look takes less than two steps; else one."""
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

    The first 300 steps are looked at more often than that, if a look is in proportion to the step; what it has cost is paid back
    by the steps to come.
    """

    def __init__(self, share: float, start: int = 0, *, gradients: int | None = None, seed: int = 0) -> None:
        """`share` of the time, such as 0.03; the first step has the number `start`.

        With `gradients` those of each so-manieth step are read, whatever it costs, and of no other that is not audited.
        """
        self._share = share
        self._gradients = gradients
        self._first, self._early, self._young = start + FIRST, start + EARLY, start + YOUNG
        self._random = Random(seed)  # of its own: the run draws from the global one
        self._next = start
        self._calm = self._early + _PLAIN
        """Steps before this one are plain, after the first ones or a burst."""
        self._burst: int | None = None
        """Where the next burst begins; None while the budget allows none."""
        self._regardless = False
        """Whether it comes whatever has been spent."""
        self._length = _BURST
        """Of how many steps it is."""
        self._suspects = False
        self.elapsed = self.spent = 0.0
        """Seconds of the run so far, and those of them that looking took."""
        self._seconds: dict[Look, deque[float]] = {look: deque(maxlen=_KEPT) for look in Look}
        self._own: dict[Look, deque[float]] = {look: deque(maxlen=_KEPT) for look in Look}

    # -- asked ------------------------------------------------------------------------------------------------

    def look(self, index: int) -> Look:
        if index < self._first:
            return Look.FULL
        if self._burst is not None and self._burst <= index < self._burst + self._length:
            return Look.FULL
        return Look.GRADIENTS if self._reads_at(index) else Look.COUNT

    def following(self, index: int) -> float:
        if self.look(index) is not Look.COUNT:
            return index
        if index < self._calm and (self._reads(index) or self._burst is None):
            return self._calm
        due = math.inf if self._burst is None else self._burst
        sample = -(-index // _READ_APART) * _READ_APART
        if self._samples(sample):
            due = min(due, sample)
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
        """Seconds of a step that is not looked at: until there was one, of those whose gradients were read without our part."""
        taken = self._seconds[Look.COUNT]
        if not taken and (read := self._seconds[Look.GRADIENTS]):
            return max(median(read) - median(self._own[Look.GRADIENTS]), 0.0)
        return median(taken) if taken else None

    def cost(self, look: Look) -> float:
        """Seconds that a look adds to a step."""
        own, taken, plain = self._own[look], self._seconds[look], self.plain
        longer = median(taken) - plain if look is not Look.COUNT and taken and plain is not None else 0.0
        return max(median(own) if own else 0.0, longer)

    def _reads_at(self, index: int) -> bool:
        if self._gradients is not None:
            return self._gradients > 0 and index % self._gradients == 0
        if index < self._early:
            return True
        return index >= self._calm and (self._reads(index) or self._samples(index))

    def _reads(self, index: int) -> bool:
        """Whether gradients are read in each step: if that takes half of the budget, of the first ones if it is in proportion."""
        if self._gradients is not None:
            return self._gradients == 1
        if self.plain is None or not self._share:
            return False
        share = _READ_PER_STEP if index < self._young else self._share / 2
        return self.cost(Look.GRADIENTS) <= share * self.plain

    def _samples(self, index: int) -> bool:
        """Whether it is time to read gradients again, though not those of each step."""
        in_proportion = self.plain is not None and self.cost(Look.GRADIENTS) <= _READ_PER_STEP * self.plain
        return index % _READ_APART == 0 and self._share > 0 and self._gradients is None and in_proportion

    # -- planning ---------------------------------------------------------------------------------------------

    def _plan(self, index: int) -> None:
        """The next step is this one: say when the next burst begins, if that is not known."""
        self._next = index
        burst, plain = self._burst, self.plain
        if plain is None or index < self._first:
            return
        full = self.cost(Look.FULL)
        length = _BURST if full <= _LATER_PER_STEP * plain else 1
        price = length * full + 2 * self.cost(Look.GRADIENTS)
        lacks = max(price + self.spent - self._share * self.elapsed, 0.0)
        if burst is not None:
            is_due = index == burst and (self._regardless or not lacks)
            if index < burst or is_due or burst < index < burst + self._length:
                return
            if index > burst and (index >= self._young or not self._seconds[Look.COUNT]):
                self._calm = max(self._calm, index + _PLAIN)
        earned = self._share * plain - (self.cost(Look.GRADIENTS) if self._reads(index) else 0.0)
        afforded = math.ceil(lacks / earned) if earned > 0 else math.inf
        waits = max(_APART, min(afforded, self._longest_wait(index, plain)))
        if math.isinf(waits):
            self._burst = None
            return
        self._regardless, self._length = waits < afforded, length
        self._burst = (
            index + int(waits) + (0 if self._suspects else self._random.randrange(int(waits) // 2 + 1))
        )
        self._suspects = False

    def _longest_wait(self, index: int, plain: float) -> float:
        """Steps after which a burst comes in any case."""
        is_young = index < self._young
        most = (_FULL_PER_STEP if is_young else _LATER_PER_STEP) * plain
        if not self._share or self.cost(Look.FULL) > most:
            return math.inf
        return _YOUNG_APART if is_young else _LATER_APART
