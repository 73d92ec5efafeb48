"""What comes out of a module has the dtype, or as many rows, as what goes in.

It is about the first tensor of each, and modules of the user's own: those of torch cannot do otherwise. That two numbers are
equal may be chance, so that at least two different ones must have been seen. TrainCheck (OSDI'25) calls it APIOutput.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.signatures import inputs, outputs
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, by_call
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"module"})
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.modules.container.Sequential")
_RAISED = int(Flag.RAISED)
_WHAT = ("dtype", "rows")

_QUERY = f"""
select run, phase, first, autocast, name, inputs, dtype, shape, count(*) as times
from events
where kind = 'module' and inputs <> '' and dtype <> '' and not {has(Flag.RAISED)}
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """What may be alike of the first input and the first output of a module."""
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    tally = Tally("input_output")
    for run, phase, rank, autocast, name, given, dtype, shape, times in events.rows(_QUERY):
        if not _is_own(name):
            continue
        attributes = {"phase": phase, "rank": rank, "autocast": autocast}
        for what in _WHAT:
            pair = _pair(what, given, dtype, shape)
            if pair is None:
                continue
            terms = {"call": name, "what": what}
            if pair[0] == pair[1]:
                values[name, what].add(pair[0])
            count = {"holds": times} if pair[0] == pair[1] else {"fails": times}
            tally.add(terms, attributes, run, **count)
    for candidate in tally.candidates():
        if len(values[str(candidate.terms["call"]), str(candidate.terms["what"])]) > 1:
            yield candidate


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    what = "has as many rows as" if terms["what"] == "rows" else "has the dtype of"
    return f"the result of {quoted(str(terms['call']))} always {what} its input{under(where)}"


class Watcher(QuietWatcher):
    """Looks at each call."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_call = by_call(invariants, "module")
        self.wanted = frozenset(self._by_call)

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """What goes in and comes out otherwise."""
        if event.flags & _RAISED:
            return
        for invariant in self._by_call.get((event.kind, event.name), ()):
            what = str(invariant.terms["what"])
            pair = _pair(what, event.inputs, event.dtype, event.shape)
            if pair is None or not meets(invariant.where, event, rank):
                continue
            self.seen.add(invariant.id)
            if pair[0] != pair[1]:
                differs = "has more or fewer rows than" if what == "rows" else "has another dtype than"
                message = f"the result of {quoted(event.name)} {differs} its input"
                yield BrokenInvariant(invariant, event, message, {"input": pair[0], "output": pair[1]}, rank)


def _pair(what: str, given: str, dtype: str, shape: str) -> tuple[str, str] | None:
    """What of the first input and output is compared; None where there is nothing to compare."""
    into, out = inputs(given), outputs(dtype, shape)
    if not into or not out:
        return None
    if what == "dtype":
        return into[0][0], out[0][0]
    if not into[0][1] or not out[0][1]:
        return None
    return str(into[0][1][0]), str(out[0][1][0])


def _is_own(name: str) -> bool:
    return not name.startswith("torch.") or name in _CONTAINERS
