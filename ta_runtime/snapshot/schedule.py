"""At which steps a snapshot is taken: `first 3, every 1000, at 1500, on incident`, or `never`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from ta_lint.core.errors import UsageError

_WORDS = "'first 3', 'every 1000', 'at 10, 20', 'on incident', several of them between commas, or 'never'"
_PART = re.compile(r"(first|every|at)\s+(\d+)|(\d+)|(on\s+incident)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps count from 0. Schedules are joined by `|`."""

    first: int = 0
    """The first so many steps; of a run that goes on from a checkpoint, those after it."""
    every: frozenset[int] = frozenset()
    """Step 0 and each n-th after it, for each of these."""
    at: frozenset[int] = frozenset()
    """These steps."""
    on_incident: bool = False
    """The step after one in which a finding opens."""
    when: Callable[[int], object] | None = None
    """Those of which this says so; it is asked once about each step."""

    def __post_init__(self) -> None:
        for step in chain([self.first], self.every, self.at):
            if not isinstance(step, int) or isinstance(step, bool) or step < 0:
                raise UsageError(f"schedule: {step!r} is not a number of steps, 0 or more")
        if 0 in self.every:
            raise UsageError("schedule: 'every 0' is not a schedule; write 'never' for no step")

    def due(self, step: int, start: int = 0) -> bool:
        """Whether this step, of a run that began with step `start`, is one to look at."""
        return self._numbered(step, start) == step or (self.when is not None and bool(self.when(step)))

    def following(self, step: int, start: int = 0) -> float:
        """The first step that may be one to look at, from this one on; infinity if there is none."""
        return step if self.when is not None else self._numbered(step, start)

    def _numbered(self, step: int, start: int) -> float:
        if start <= step < start + self.first:
            return step
        listed = (number for number in self.at if number >= step)
        return min(chain(listed, (-(-step // count) * count for count in self.every)), default=math.inf)

    def __or__(self, other: "Schedule") -> "Schedule":
        return Schedule(
            max(self.first, other.first),
            self.every | other.every,
            self.at | other.at,
            self.on_incident or other.on_incident,
            _either(self.when, other.when),
        )


def _either(
    one: Callable[[int], object] | None, other: Callable[[int], object] | None
) -> Callable[[int], object] | None:
    if one is None or other is None:
        return one or other
    return lambda step: any([one(step), other(step)])  # each is asked about each step


def first(count: int) -> Schedule:
    """The first so many steps."""
    return Schedule(first=count)


def every(count: int) -> Schedule:
    """Step 0 and each n-th after it."""
    return Schedule(every=frozenset([count]))


def at(*steps: int) -> Schedule:
    """These steps."""
    return Schedule(at=frozenset(steps))


def on_incident() -> Schedule:
    """The step after one in which a finding opens."""
    return Schedule(on_incident=True)


def never() -> Schedule:
    """No step."""
    return Schedule()


def when(says: Callable[[int], object]) -> Schedule:
    """The steps of which a function says so, which is given the number of each."""
    return Schedule(when=says)


_MADE: dict[str, Callable[[int], Schedule]] = {"first": first, "every": every, "at": at}


def resolve(schedule: "str | Schedule | Callable[[int], object]", key: str = "schedule") -> Schedule:
    """The schedule that a text describes, or a function of the number of a step; `key` is what the caller calls it.

    Raises:
        UsageError: it is none; the text says what to write.
    """
    if isinstance(schedule, Schedule):
        return schedule
    if callable(schedule):
        return when(schedule)
    if not isinstance(schedule, str):
        raise UsageError(f"{key}: {schedule!r} is not a schedule; write {_WORDS}")
    if schedule.strip().lower() == "never":
        return never()
    found, word = never(), ""
    for part in map(str.strip, schedule.split(",")):
        match = _PART.fullmatch(part)
        if match is None or (match[3] and word != "at"):
            raise UsageError(f"{key}: {part!r} is not a schedule; write {_WORDS}")
        if match[4]:
            word, found = "", found | on_incident()
            continue
        word, number = (match[1] or word).lower(), int(match[2] or match[3])
        if word == "every" and not number:
            raise UsageError(f"{key}: {part!r} is not a schedule; write 'never' for no step")
        found |= _MADE[word](number)
    return found
