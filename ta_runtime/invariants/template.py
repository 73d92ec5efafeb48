"""What a template is: a module of `ta_runtime.invariants.templates` with these names, found by its file name.

    KINDS: frozenset[str]          the kinds of events that it is about
    def candidates(events: Events) -> Iterator[Candidate]
                                   what may hold, with counts, from one pass over the columns of all traces
    def sentence(terms, where) -> str
                                   "`torch.optim.AdamW.step` always changes a parameter": what people read
    class Watcher                  sees one run, and says what of these invariants it breaks

Both look at the same thing: what `candidates` counts as held, a `Watcher` that sees the same events never calls broken.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ta_runtime.invariants.invariant import Invariant
from ta_runtime.trace.event import Event


@dataclass(frozen=True)
class Group:
    """How often a candidate held and failed where the attributes had these values, in so many runs."""

    attributes: Mapping[str, str]
    holds: int
    fails: int
    runs: int


@dataclass(frozen=True)
class Candidate:
    """What may hold, and its counts by attributes; `inferring` finds the conditions under which it always does."""

    template: str
    terms: Mapping[str, str | int | float]
    groups: Sequence[Group]


@dataclass(frozen=True)
class BrokenInvariant:
    """An invariant that an event, or the lack of one, breaks."""

    invariant: Invariant
    event: Event
    """What broke it: its line is where the finding stands."""
    message: str
    """Lower case, present tense, without numbers that change from step to step: "`AdamW.step` changes no parameter"."""
    evidence: Mapping[str, float | int | str]
    rank: int = 0


class Watcher(Protocol):
    """Sees the events of one run, rank by rank within a step, and keeps a state of constant size for each invariant."""

    def __init__(self, invariants: Sequence[Invariant]) -> None: ...

    @property
    def wanted(self) -> frozenset[tuple[str, str]]:
        """The kind and name of events that it needs; the name is empty where it needs all of a kind."""

    @property
    def seen(self) -> Collection[str]:
        """The ids of the invariants that were put to the test: what they are about did happen."""

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]: ...

    def step_over(self, step: int, rank: int) -> Iterable[BrokenInvariant]:
        """A rank has ended a step: what is kept of it can go, unless other ranks are still to be compared."""

    def over(self) -> Iterable[BrokenInvariant]:
        """The run has ended."""


class QuietWatcher:
    """What a `Watcher` does that breaks nothing when a step or the run ends, as most do."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def step_over(self, step: int, rank: int) -> Iterable[BrokenInvariant]:
        return ()

    def over(self) -> Iterable[BrokenInvariant]:
        return ()


def by_call(invariants: Iterable[Invariant], kind: str = "") -> dict[tuple[str, str], list[Invariant]]:
    """Invariants by kind and name of the call that is their term `call`; the kind is a term as well, unless it is given."""
    found: dict[tuple[str, str], list[Invariant]] = defaultdict(list)
    for invariant in invariants:
        found[kind or str(invariant.terms["kind"]), str(invariant.terms["call"])].append(invariant)
    return found


Telling = dict[tuple[str, str], tuple[object, Event]]
"""What one rank tells of a step: by id of an invariant and what is compared, a plain value and the event that gave it."""


@runtime_checkable
class Comparer(Protocol):
    """What a `Watcher` has as well if its invariants are about several ranks, which may be seen by different processes."""

    def told(self, rank: int) -> Telling:
        """What the others need of the step that this rank has just ended; asked once, right after `step_over`."""

    def compare(self, invariant: Invariant, key: str, own: object, other: object) -> str | None:
        """The message of a violation, if what two ranks tell under one key breaks the invariant."""
