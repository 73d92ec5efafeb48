"""The order of what a run calls: its loop, backward passes, batches, collectives, checkpoints, and outermost modules.

Order is learned of these alone. Calls of modules are told in steps traced as a whole only: of what lies between two calls,
modules included, nothing is known unless both are in such steps, and these follow each other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Group
from ta_runtime.invariants.words import quoted
from ta_runtime.trace.event import Event, Flag

LOOP = ("batch", "epoch", "backward", "loop", "collective", "checkpoint")
KINDS = frozenset({*LOOP, "module"})

_MOST = 62
"""Calls that are looked at, of a program that has more those that come most often: they are the bits of an integer."""

FORWARD = "forward of "
"""What the titles of modules begin with."""

_CALLS = f"""
select run, rank, seq, "end", parent, step, kind, whole, phase, first, autocast,
    case when kind in ('batch', 'epoch') then kind || ' of loader ' || subject
         when kind = 'module' then '{FORWARD}' || name
         when subject = '' then name else name || ' of ' || subject end as title
from events
where (kind in {LOOP} or kind = 'module' and (subject = '' or ends_with(name, '.' || subject))) and not {has(Flag.RAISED)}
"""
_TITLES = """
select kind, title, sum(own.calls), max(own.calls), bool_and(2 * own.steps > whole.steps)
from (select run, rank, kind, title, count(*) as calls, count(distinct step) as steps from sequence group by all) as own
join (select run, rank, count(distinct step) as steps from sequence group by all) as whole using (run, rank)
group by all order by sum(own.calls) desc, title
"""
_NESTED = """
select distinct own.kind, own.title, whole.kind, whole.title from sequence as own
join sequence as whole on (own.run, own.rank, own.parent) = (whole.run, whole.rank, whole.seq)
"""
_SPANS = """
with placed as (
    select *, row_number() over (partition by run, rank order by "end") as place
    from sequence join numbers using (kind, title)
), paired as (
    select *, coalesce(lag(place) over own, 0) as since, lag(phase) over own as phase_since, lag(autocast) over own as autocast_since,
        whole and if(since = 0, step = 0, lag(whole) over own and step - lag(step) over own <= 1) as is_known
    from placed window own as (partition by run, rank, number order by place)
), spans as (
    select *, bit_or(1::ubigint << number) over (
        partition by run, rank order by place rows between (place - since - 1) preceding and 1 preceding
    ) as inside from paired
)
select number, phase, first, autocast, phase_since, autocast_since, is_known, coalesce(inside, 0) as inside,
    count(*) as times, count(distinct run) as runs
from spans where since > 0 or step = 0 group by all
"""
"""From each call back to the one before of the same, or to the beginning of the run for one in its first step: what was
called in between, as bits."""


class Callee(NamedTuple):
    """What is called."""

    kind: str
    title: str
    most: int
    """How often, in the trace and rank where it is called most."""
    is_dense: bool
    """Whether it is called in more than half of the steps, in each trace and rank where it is called."""

    @property
    def is_step(self) -> bool:
        return self.kind == "loop" and self._method == "step" and not self._is_scheduler

    @property
    def goes_by_epoch(self) -> bool:
        """Whether programs call it once for each pass over the data. How many steps lie between two such calls depends on the
        size of a batch."""
        return self.kind in ("epoch", "checkpoint") or self._method in ("train", "eval") or self._is_scheduler

    @property
    def _method(self) -> str:
        return self.title.partition(" of ")[0].rpartition(".")[2]

    @property
    def _is_scheduler(self) -> bool:
        return "lr_scheduler." in self.title or "Scheduler" in self.title


class Span(NamedTuple):
    """Calls of the same in the same circumstances, and what was called since the one before."""

    own: dict[str, str]
    """Attributes."""
    before: dict[str, str] | None
    """Those of the call before; None: it is the first."""
    is_known: bool
    """Whether calls of modules in between were told."""
    inside: frozenset[Callee]
    times: int
    runs: int


Counts = dict[tuple[tuple[str, str], ...], tuple[int, int, int]]
"""By attributes: how often it held, failed, and in how many runs."""


class Order:
    """What is called in all traces, and what between two calls of the same."""

    def __init__(self, events: Events) -> None:
        events.keep("sequence", _CALLS)
        nested = [((kind, title), (outer, of)) for kind, title, outer, of in events.rows(_NESTED)]
        self._nested = {frozenset(pair) for pair in nested}
        hidden = {inner for inner, outer in nested if _hides(inner, outer)}
        self.calls = [
            Callee(kind, title, most, is_dense)
            for kind, title, _, most, is_dense in events.rows(_TITLES)
            if (kind, title) not in hidden
        ][:_MOST]
        events.keep("numbers", _numbered(self.calls))
        events.keep("spans", _SPANS)
        self._spans: dict[Callee, list[Span]] = defaultdict(list)
        for row in events.rows("select * from spans"):
            self._spans[self.calls[row[0]]].append(self._span(*row[1:]))
        passes = [call for call in self.calls if call.kind == "epoch"]
        self.shows_epochs = bool(passes) and not passes[0].is_dense
        """Whether a pass over the data has several steps."""
        self._begun_again = {call.title for call in passes if call.most > 1}

    def pairs(self) -> Iterator[tuple[Callee, Callee]]:
        """Calls of which the second may be needed between two of the first, whatever the size of a batch is.

        How many steps an epoch has is chance. So what is called in each step may be needed by all; what is not, by what comes
        exactly as often. Whether a call comes in each step or in each epoch shows only where there are epochs of several.
        """
        for between in self.calls:
            for there in self.calls:
                if between is there or frozenset((between[:2], there[:2])) in self._nested:
                    continue
                if (
                    there.kind == "batch"
                    and there.title.replace("batch", "epoch", 1) not in self._begun_again
                ):
                    continue  # what is fetched ahead is missing at the end of a pass
                in_each_step = there.is_dense and (self.shows_epochs or not there.goes_by_epoch)
                alike = between.goes_by_epoch == there.goes_by_epoch
                if in_each_step or (alike and self._alternate(between, there)):
                    yield between, there

    def counts(self, between: Callee, there: Callee, *, first: bool) -> list[Group]:
        """How often one is called between two calls of another, by the attributes of the earlier; with `first` by those of the
        later, and from the beginning of the run to the first."""
        found: dict[tuple[tuple[str, str], ...], tuple[int, int, int]] = {}
        reads_modules = "module" in (between.kind, there.kind)
        for span in self._spans[between]:
            attributes = span.own if first else span.before
            if attributes is None or (reads_modules and not span.is_known):
                continue
            key = tuple(attributes.items())
            holds, fails, runs = found.get(key, (0, 0, 0))
            is_there = there in span.inside
            found[key] = (
                holds + is_there * span.times,
                fails + (not is_there) * span.times,
                max(runs, span.runs),
            )
        return [Group(dict(key), *counts) for key, counts in found.items()]

    def _alternate(self, one: Callee, other: Callee) -> bool:
        counts = [*self.counts(one, other, first=False), *self.counts(other, one, first=False)]
        return bool(counts) and not any(group.fails for group in counts)

    def _span(
        self, phase: str, rank: str, autocast: str, phase_before: str | None, autocast_before: str | None, is_known: bool,
        inside: int, times: int, runs: int,
    ) -> Span:  # fmt: skip
        own = {"phase": phase, "rank": rank, "autocast": autocast}
        before = None
        if phase_before is not None and autocast_before is not None:
            before = {"phase": phase_before, "rank": rank, "autocast": autocast_before}
        there = frozenset(call for number, call in enumerate(self.calls) if inside >> number & 1)
        return Span(own, before, is_known, there, times, runs)


def _hides(inner: tuple[str, str], outer: tuple[str, str]) -> bool:
    """Whether a call inside another is no call of the loop: a part of a model, or the step that a scaler may leave out."""
    return (inner[0] == outer[0] == "module") or "GradScaler.step" in outer[1]


def _numbered(calls: Sequence[Callee]) -> str:
    rows = [f"({_quoted(call.kind)}, {_quoted(call.title)}, {number})" for number, call in enumerate(calls)]
    return f"select * from (values {', '.join(rows) or '(null, null, 0)'}) as numbers(kind, title, number)"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@lru_cache(maxsize=1 << 12)
def title(kind: str, name: str, subject: str) -> str:
    """What a call is called; empty for the call of a module inside another. The same as in `_CALLS`."""
    if kind in ("batch", "epoch"):
        return f"{kind} of loader {subject}"
    if kind == "module":
        return FORWARD + name if not subject or name.endswith(f".{subject}") else ""
    return f"{name} of {subject}" if subject else name


def wanted(titles: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Kinds and names of the events that have these titles."""
    found: set[tuple[str, str]] = set()
    for each in titles:
        name, _, of = each.partition(" of ")
        if name in ("batch", "epoch"):
            found.add((name, ""))
        elif each.startswith(FORWARD):
            found.add(("module", of))
        else:
            found |= {(kind, name) for kind in LOOP}
    return frozenset(found)


def said(title: str | float) -> str:
    """A title in words: `a forward pass of `Net``."""
    name, _, of = str(title).partition(" of ")
    if name in ("batch", "epoch"):
        return f"{'a batch' if name == 'batch' else 'a new pass'} of {of}"
    if name == "forward":
        return f"a forward pass of {quoted(of)}"
    return f"{quoted(name)} of `{of}`" if of else quoted(name)


class Follower:
    """Watches for what is missing between two calls of the same, for the templates of order."""

    def __init__(
        self,
        invariants: Sequence[Invariant],
        between: str,
        there: str,
        *,
        first: bool,
        message: Callable[[str, str], str],
    ) -> None:
        """`between` and `there` are the terms that name these calls; `first` is as in `Order.counts`."""
        self._there, self._first, self._message = there, first, message
        self._of: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            self._of[str(invariant.terms[between])].append(invariant)
        self._last: dict[tuple[int, str], tuple[int, Event]] = {}  # of each rank and title: when, and what
        self._now = 0
        self.seen: set[str] = set()
        self.wanted = wanted({*self._of, *(str(invariant.terms[there]) for invariant in invariants)})

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """What is missing before a call."""
        name = title(event.kind, event.name, event.subject)
        if not name or event.flags & Flag.RAISED:
            return
        since, before = self._last.get((rank, name), (0, None))
        for invariant in self._of.get(name, ()):
            yield from self._judged(invariant, since, before, event, rank)
        self._now += 1
        self._last[rank, name] = self._now, event

    def _judged(
        self, invariant: Invariant, since: int, before: Event | None, event: Event, rank: int
    ) -> Iterator[BrokenInvariant]:
        about = event if self._first else before
        if about is None or (before is None and event.step) or not meets(invariant.where, about, rank):
            return
        self.seen.add(invariant.id)
        there = str(invariant.terms[self._there])
        found, _ = self._last.get((rank, there), (0, None))
        reads_modules = event.kind == "module" or there.startswith(FORWARD)
        if found <= since and (_is_known(before, event) or not reads_modules):
            yield BrokenInvariant(
                invariant, event, self._message(title(event.kind, event.name, event.subject), there), {}, rank
            )

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """The last call of each stays: the next step goes on from it."""
        return iter(())

    def over(self) -> Iterator[BrokenInvariant]:
        """A run may end anywhere."""
        return iter(())


def _is_known(before: Event | None, event: Event) -> bool:
    if not event.flags & Flag.WHOLE:
        return False
    return (
        not event.step
        if before is None
        else bool(before.flags & Flag.WHOLE) and event.step - before.step <= 1
    )
