"""No two batches are alike: of one pass over a loader within a step of the optimizer, or of two ranks at the same time.

Batches are compared by their content. Passes are kept apart, as the same data come again in each. That no two are equal by
chance is taken for granted: few distinct samples in smaller batches than those it was learned from may be. How many rows they
had is not among the terms, as an invariant would have another id for each size of a batch. TrainCheck (OSDI'25) calls it
APIArg, and takes any function; of those of torch a trace has no contents of arguments.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import SEVERAL_RANKS, Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, Telling
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event

KINDS = frozenset({"batch", "epoch"})
_REMEMBERED = 1 << 12
"""Batches of a pass that later ones of the step are compared with."""

_CALLS = """
with passes as (
    select run, rank, first, step, phase, kind, name, subject, digest, count(*) filter (kind = 'epoch') over (
        partition by run, rank, step, subject order by seq rows unbounded preceding
    ) as pass  -- within the step, as a group is: over a whole run the window would not be linear
    from events
    where kind in ('batch', 'epoch')
), groups as (
    select run, first, phase, name, count(*) as batches, count(distinct digest) as contents
    from passes
    where kind = 'batch' and digest is not null
    group by run, rank, first, step, phase, name, subject, pass
    having count(*) > 1
)
select run, first, phase, name, count(*) filter (batches = contents), count(*) filter (batches > contents)
from groups
group by all
"""

_RANKS = f"""
with numbered as (
    select run, rank, step, phase, name, subject, digest,
           row_number() over (partition by run, rank, step, name, subject order by seq) as number
    from events
    where kind = 'batch' and digest is not null and {SEVERAL_RANKS}
), groups as (
    select run, phase, name, count(*) as batches, count(distinct digest) as contents
    from numbered
    group by run, step, phase, name, subject, number
    having count(*) > 1
)
select run, phase, name, count(*) filter (batches = contents), count(*) filter (batches > contents)
from groups
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """The loaders whose batches may be distinct."""
    tally = Tally("distinct_arguments")
    for run, rank, phase, name, holds, fails in events.rows(_CALLS):
        terms = {"call": name, "across": "calls"}
        tally.add(terms, {"phase": phase, "rank": rank}, run, holds=holds, fails=fails)
    for run, phase, name, holds, fails in events.rows(_RANKS):
        tally.add({"call": name, "across": "ranks"}, {"phase": phase}, run, holds=holds, fails=fails)
    yield from tally.candidates()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    call = quoted(str(terms["call"]))
    if terms["across"] == "ranks":
        return f"no two ranks ever get the same batch of {call} in a step{under(where)}"
    return f"no two batches of {call} in a step are ever the same{under(where)}"


class Watcher(QuietWatcher):
    """Keeps of each step the contents of its batches."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._invariants = invariants
        self._contents: dict[tuple[int, str, str], set[int]] = defaultdict(set)
        self._numbers: Counter[tuple[int, str]] = Counter()
        self._tellings: dict[int, Telling] = defaultdict(dict)
        calls = {str(each.terms["call"]) for each in invariants}
        batches = frozenset(("batch", call) for call in calls)
        self.wanted = batches | {("epoch", "")} if batches else batches

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """A batch that came before in this step."""
        if event.kind == "epoch":
            for key in [key for key in self._contents if key[0] == rank and key[2] == event.subject]:
                del self._contents[key]
            return
        if event.kind != "batch" or event.digest is None:
            return
        number = self._numbers[rank, event.subject] = self._numbers[rank, event.subject] + 1
        for invariant in self._invariants:
            if invariant.terms["call"] != event.name or not meets(invariant.where, event, rank):
                continue
            if invariant.terms["across"] == "ranks":
                if number < _REMEMBERED:
                    batch = f"batch {number} of {event.subject}"
                    self._tellings[rank][invariant.id, batch] = (event.digest, event)
                continue
            contents = self._contents[rank, invariant.id, event.subject]
            if contents:
                self.seen.add(invariant.id)
            if event.digest in contents:
                message = f"{quoted(event.name)} gives the same batch twice in a step"
                yield BrokenInvariant(invariant, event, message, {}, rank)
            elif len(contents) < _REMEMBERED:
                contents.add(event.digest)

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """What was kept of it goes."""
        for passed in [key for key in self._contents if key[0] == rank]:
            del self._contents[passed]
        for counted in [key for key in self._numbers if key[0] == rank]:
            del self._numbers[counted]
        yield from ()

    def told(self, rank: int) -> Telling:
        """The contents of the batches of the step."""
        return self._tellings.pop(rank, {})

    def compare(self, invariant: Invariant, key: str, own: object, other: object) -> str | None:
        """A batch that two ranks got at the same time."""
        self.seen.add(invariant.id)
        return (
            f"{quoted(str(invariant.terms['call']))} gives two ranks the same batch" if own == other else None
        )
