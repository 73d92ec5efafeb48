"""States that are always equal: two of one rank, or one on all ranks after each step.

Two are equal by chance while neither changes, so that they must have changed together. What counts batches is left out: all
such buffers of a model are equal. TrainCheck (OSDI'25) calls it Consistent.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import SEVERAL_RANKS, Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, Telling
from ta_runtime.invariants.words import under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"parameter", "buffer", "gradient"})
_COUNTERS = "num_batches_tracked"
_ZERO = int(Flag.ZERO)
_CHANGES = 2
"""Contents that two states must have had together."""

# One number for each state, of all its contents and when it had them: equal for two that never differed.
_ALIKE = f"""
with histories as (
    select run, rank, kind, subject, count(*) as times, count(distinct digest) as contents,
           sum(hash(step, phase, digest)::hugeint) as history
    from events
    where kind in ('parameter', 'buffer') and digest is not null and not ends_with(subject, '{_COUNTERS}')
    group by run, rank, kind, subject
)
select run, kind, list(subject order by subject), any_value(times)
from histories
where contents >= {_CHANGES}
group by run, rank, kind, history
having count(*) > 1
"""

# Of each state and step whether all ranks had the same; the last of a step counts.
_RANKS = f"""
with last as (
    select run, rank, step, phase, kind, class, subject, requires_grad, arg_max(digest, seq) as digest
    from events
    where kind in ('parameter', 'buffer', 'gradient') and digest is not null and not ends_with(subject, '{_COUNTERS}')
      and not (kind = 'gradient' and {has(Flag.ZERO)})  -- as a clearing left it
      and {SEVERAL_RANKS}
    group by all
), steps as (
    select run, phase, kind, class, subject, requires_grad, count(distinct digest) = 1 as same
    from last
    group by run, step, phase, kind, class, subject, requires_grad
    having count(*) > 1
)
select run, phase, kind, class, requires_grad, count(*) filter (same), count(*) filter (not same)
from steps
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """Pairs of states, and kinds of states that ranks share."""
    tally = Tally("consistent")
    for run, kind, names, times in events.rows(_ALIKE):
        for name in names[1:]:
            tally.add({"kind": kind, "name": names[0], "other": name}, {}, run, holds=times)
    for run, phase, kind, name, gradient, holds, fails in events.rows(_RANKS):
        attributes = {"phase": phase, "class": name, "requires_grad": gradient}
        tally.add({"kind": kind, "across": "ranks"}, attributes, run, holds=holds, fails=fails)
    yield from tally.candidates()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    if "across" in terms:
        return f"after each step all ranks have the same {terms['kind']}s{under(where)}"
    return f"{_pair(terms)} are always equal{under(where)}"


class Watcher(QuietWatcher):
    """Keeps of each step the digests of what is compared."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._across = [each for each in invariants if "across" in each.terms]
        self._pairs = [each for each in invariants if "across" not in each.terms]
        self._named = {
            (each.terms["kind"], each.terms[end]) for each in self._pairs for end in ("name", "other")
        }
        self._digests: dict[int, dict[tuple[str, str], Event]] = defaultdict(dict)
        self._tellings: dict[int, Telling] = defaultdict(dict)
        self.wanted = frozenset((str(each.terms["kind"]), "") for each in invariants)

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """Nothing before the step is over."""
        if event.kind in KINDS and event.digest is not None and _counts(event):
            if (event.kind, event.subject) in self._named:
                self._digests[rank][event.kind, event.subject] = event
            for invariant in self._across:
                if invariant.terms["kind"] == event.kind and meets(invariant.where, event, rank):
                    self._tellings[rank][invariant.id, event.subject] = (event.digest, event)
        yield from ()

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """Pairs that are no longer equal."""
        digests = self._digests.pop(rank, {})
        for invariant in self._pairs:
            terms = invariant.terms
            first, other = (digests.get((str(terms["kind"]), str(terms[end]))) for end in ("name", "other"))
            if first is None or other is None or not meets(invariant.where, first, rank):
                continue
            self.seen.add(invariant.id)
            if first.digest != other.digest:
                yield BrokenInvariant(invariant, other, f"{_pair(terms)} are no longer equal", {}, rank)

    def told(self, rank: int) -> Telling:
        """The digests of the step."""
        return self._tellings.pop(rank, {})

    def compare(self, invariant: Invariant, key: str, own: object, other: object) -> str | None:
        """A state that two ranks have not alike."""
        self.seen.add(invariant.id)
        kind = invariant.terms["kind"]
        return f"the {kind} `{key}` is not the same on all ranks" if own != other else None


def _counts(event: Event) -> bool:
    """Whether it is neither a gradient as a clearing left it nor a count of batches."""
    if event.kind == "gradient":
        return not event.flags & _ZERO
    return not event.subject.endswith(_COUNTERS)


def _pair(terms: Mapping[str, str | int | float]) -> str:
    return f"the {terms['kind']}s `{terms['name']}` and `{terms['other']}`"
