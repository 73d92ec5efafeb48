"""A call always contains another: a module that another calls, a function that it applies, a collective in a backward pass.

TrainCheck's EventContain, where the child is a call. What counts is what a module calls itself; what torch's own modules do
inside is torch's affair, and a `Sequential` is looked through. In another run the child may lie deeper.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import NAMES, Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, Group, QuietWatcher
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

PARENTS = ("module", "loop", "backward")
CHILDREN = ("module", "op", "loop", "backward", "collective")
KINDS = frozenset({*PARENTS, *CHILDREN})

_CONTAINERS = "('torch.nn.Sequential', 'torch.nn.ModuleList', 'torch.nn.ModuleDict')"
_SEQUENTIAL = "torch.nn.Sequential"
"""Only the first model may be one that is meant: of the others by this name each holds other layers."""
_DEPTH = 3
"""How many containers in each other are looked through."""
_INCOMPLETE, _WHOLE = int(Flag.RAISED | Flag.COMPILED), int(Flag.WHOLE)
"""Of a call whose inside is not all told."""

_ATTRIBUTES = ", ".join(f"call.{name}" for name in NAMES)

_CALLS = f"""
select run, rank, seq, kind, name, {", ".join(NAMES)} from events
where kind in {PARENTS} and whole and not {has(Flag.RAISED | Flag.COMPILED)}
  and (name not like 'torch.nn.%' or name = '{_SEQUENTIAL}' and subject = '')
  and name not like '%GradScaler.%'  -- it leaves out a step that overflows
"""

_INSIDE = f"""
select run, rank, parent, kind, name from events
where kind in {CHILDREN} and parent >= 0 and name not in {_CONTAINERS}
  and (kind <> 'op' or name not like 'torch.Tensor.%')
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """Each pair of a call and what it was ever seen to call itself."""
    events.keep("calls", _CALLS)
    events.keep(
        "containers",
        f"select run, rank, seq, parent from events where kind = 'module' and name in {_CONTAINERS} and subject <> ''",
    )
    inside = _INSIDE
    for _ in range(_DEPTH):
        inside = f"""
            select inside.run, inside.rank, coalesce(containers.parent, inside.parent) as parent, inside.kind, inside.name
            from ({inside}) as inside left join containers
            on (containers.run, containers.rank, containers.seq) = (inside.run, inside.rank, inside.parent)
        """
    totals: dict[str, dict[tuple[str, ...], tuple[int, int]]] = defaultdict(dict)
    for name, *values, count, runs in events.rows(
        f"select name, {_ATTRIBUTES}, count(*), count(distinct run) from calls as call group by all"
    ):
        totals[name][tuple(values)] = count, runs
    held: dict[tuple[str, str], dict[tuple[str, ...], int]] = defaultdict(dict)
    for parent, child, *values, count in events.rows(f"""
        select call.name, inside.name, {_ATTRIBUTES}, count(*)
        from calls as call
        join (select distinct run, rank, parent, kind, name from ({inside})) as inside
        on (call.run, call.rank, call.seq) = (inside.run, inside.rank, inside.parent)
        where call.name <> inside.name and (inside.kind <> 'op' or call.kind = 'module')
        group by all
    """):
        held[parent, child][tuple(values)] = count
    for (parent, child), counts in sorted(held.items()):
        groups = [
            Group(_attributes(values), counts.get(values, 0), total - counts.get(values, 0), runs)
            for values, (total, runs) in totals[parent].items()
        ]
        yield Candidate("contain", {"parent": parent, "child": child}, groups)


def _attributes(values: Sequence[str]) -> dict[str, str]:
    """Without the class, which the parent's name says."""
    phase, rank, _, autocast, requires_grad = values
    return {"phase": phase, "rank": rank, "autocast": autocast, "requires_grad": requires_grad}


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    return f"{quoted(str(terms['parent']))} always calls {quoted(str(terms['child']))}{under(where)}"


class Watcher(QuietWatcher):
    """Keeps of each child when it last began: a call contains it if that is after its own beginning."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._of: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            self._of[str(invariant.terms["parent"])].append(invariant)
        self._children = frozenset(str(invariant.terms["child"]) for invariant in invariants)
        self._began: dict[tuple[int, str], int] = {}  # by rank and name

    @property
    def wanted(self) -> frozenset[tuple[str, str]]:
        parents = {(kind, name) for kind in PARENTS for name in self._of}
        return frozenset(parents | {(kind, name) for kind in CHILDREN for name in self._children})

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]:
        found = [*self._judged(event, rank)] if event.name in self._of and event.kind in PARENTS else ()
        if event.name in self._children and event.kind in CHILDREN:
            self._began[rank, event.name] = max(event.seq, self._began.get((rank, event.name), -1))
        return found

    def _judged(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        if not event.flags & _WHOLE or event.flags & _INCOMPLETE:
            return
        if event.name == _SEQUENTIAL and event.subject:
            return
        for invariant in self._of[event.name]:
            if meets(invariant.where, event, rank):
                self.seen.add(invariant.id)
                child = str(invariant.terms["child"])
                if self._began.get((rank, child), -1) <= event.seq:
                    message = f"{quoted(event.name)} does not call {quoted(child)}"
                    yield BrokenInvariant(invariant, event, message, {}, rank)
