"""A call comes a fixed number of times between two of another: four backward passes for each step, a step of the target network
after each ten of the optimizer.

In `terms`, there are `times` calls of `call` from one `each` to the next. How many steps an epoch has depends on the size of a
batch, and so does what is left over at its end: a count is judged only where no pass over the data begins within it or within
the next. Where no run shows where a pass begins, and where a pass is one step, nothing is learned. Of what is called once for
each pass `lead` and `cover` say all.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.sequence import KINDS, Callee, Order, said, title, wanted
from ta_runtime.invariants.template import BrokenInvariant, Candidate, Group, QuietWatcher
from ta_runtime.invariants.words import under
from ta_runtime.trace.event import Event, Flag

__all__ = ["KINDS", "Watcher", "candidates", "sentence"]

_COUNTS = """
with placed as (
    select run, rank, number, "end", phase, first, autocast, sum((kind = 'epoch')::int) over own as passes,
        sum((number = {counted})::int) over own as counted
    from sequence join numbers using (kind, title) where kind = 'epoch' or number in ({counted}, {each})
    window own as (partition by run, rank order by "end" rows between unbounded preceding and current row)
), spans as (
    select *, counted - lag(counted) over own as times, lag(passes) over own = passes and lead(passes) over own = passes as is_judged
    from placed where number in ({each}) window own as (partition by run, rank, number order by "end")
)
select number, phase, first, autocast, times, count(*), count(distinct run) from spans where is_judged group by all
"""
"""Of calls, how often so many of another came since the one before of the same. DuckDB counts with a filter in quadratic time
where it sums in linear."""


def candidates(events: Events) -> Iterator[Candidate]:
    """How many backward passes come for each step, and how many steps for each call that is rarer."""
    order = Order(events)
    if not order.shows_epochs:
        return
    steps = [call for call in order.calls if call.is_step]
    for call in order.calls:
        rarer = (
            steps
            if call.kind == "backward"
            else [each for each in order.calls if each.kind in ("loop", "collective")]
        )
        others = [each for each in rarer if 0 < 2 * each.most <= call.most]
        if others and (call.kind == "backward" or call.is_step):
            yield from _counted(events, order.calls, call, others)


def _counted(
    events: Events, calls: Sequence[Callee], call: Callee, others: Sequence[Callee]
) -> Iterator[Candidate]:
    numbers = ", ".join(str(calls.index(other)) for other in others)
    found: dict[Callee, list[tuple[dict[str, str], int, int, int]]] = defaultdict(list)
    for number, phase, rank, autocast, times, count, runs in events.rows(
        _COUNTS.format(counted=calls.index(call), each=numbers)
    ):
        found[calls[number]].append(
            ({"phase": phase, "rank": rank, "autocast": autocast}, int(times), count, runs)
        )
    for each, rows in sorted(found.items()):
        totals: dict[int, int] = defaultdict(int)
        for _, times, count, _ in rows:
            totals[times] += count
        usual = max(totals, key=lambda times: (totals[times], -times))
        if usual > 1:
            groups: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(lambda: [0, 0, 0])
            for attributes, times, count, runs in rows:
                group = groups[tuple(attributes.items())]
                group[times != usual] += count
                group[2] = max(group[2], runs)
            terms: dict[str, str | int | float] = {"call": call.title, "each": each.title, "times": usual}
            yield Candidate("period", terms, [Group(dict(key), *group) for key, group in groups.items()])


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    return f"{said(terms['call'])} always comes {terms['times']} times for each {said(terms['each'])}{under(where)}"


@dataclass
class _Count:
    """Of one invariant and rank, since the last call of `each`."""

    times: int = 0
    began: bool = False
    """Whether there was such a call."""
    is_cut: bool = False
    """Whether a pass over the data began since."""
    wrong: BrokenInvariant | None = None
    """What is wrong with the count before, unless it was the last of its pass."""
    judges: bool = False
    """Whether the count before was of one pass, so that the invariant is put to the test."""


class Watcher(QuietWatcher):
    """Counts from call to call. A count is judged with the next, when it is known whether its pass went on."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_title: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            for term in ("call", "each"):
                self._by_title[str(invariant.terms[term])].append(invariant)
        self._counts: dict[int, dict[str, _Count]] = {}
        self._ids = [invariant.id for invariant in invariants]
        self.wanted = wanted(self._by_title) | {("epoch", "")}

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """A count that is over and wrong."""
        if event.flags & Flag.RAISED:
            return
        counts = self._counts.setdefault(rank, {each: _Count() for each in self._ids})
        if event.kind == "epoch":
            for count in counts.values():
                count.is_cut = True
        name = title(event.kind, event.name, event.subject)
        for invariant in self._by_title.get(name, ()):
            if name == invariant.terms["call"]:
                counts[invariant.id].times += 1
            else:
                yield from self._over(invariant, counts[invariant.id], event, rank)

    def _over(
        self, invariant: Invariant, count: _Count, event: Event, rank: int
    ) -> Iterator[BrokenInvariant]:
        if not count.is_cut and count.judges:
            self.seen.add(invariant.id)
            if count.wrong is not None:
                yield count.wrong
        count.judges = count.began and not count.is_cut and meets(invariant.where, event, rank)
        count.wrong = None
        if count.judges and count.times != invariant.terms["times"]:
            message = f"{said(invariant.terms['call'])} does not come {invariant.terms['times']} times before {said(invariant.terms['each'])}"
            count.wrong = BrokenInvariant(invariant, event, message, {"times": count.times}, rank)
        count.times, count.began, count.is_cut = 0, True, False
