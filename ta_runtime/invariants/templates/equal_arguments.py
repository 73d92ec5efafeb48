"""All ranks give equal arguments to the n-th call of a collective in a step: tensors of one dtype and shape, one root.

Ranks that do not are stuck, abort, or read memory that nobody wrote. TrainCheck has no such template, although an error of
its own catalogue, DeepSpeed #5794, needs it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, Telling, by_call
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event

KINDS = frozenset({"collective"})
_WHAT = ("inputs", "arguments")
_MOST = 1 << 10
"""Calls of a function in a step that are compared: of more, the first."""

_QUERY = f"""
with numbered as (
    select run, rank, step, phase, name, subject, inputs, arguments,
           row_number() over (partition by run, rank, step, name, subject order by seq) as number
    from events
    where kind = 'collective'
), calls as (
    select run, phase, name, count(distinct inputs) = 1 as inputs, count(distinct arguments) = 1 as arguments
    from numbered
    where number <= {_MOST}
    group by run, step, phase, name, subject, number
    having count(*) > 1
)
select run, phase, name, inputs, arguments, count(*)
from calls
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """The collectives whose arguments ranks may give alike."""
    tally = Tally("equal_arguments")
    for run, phase, name, *same, times in events.rows(_QUERY):
        for what, equal in zip(_WHAT, same, strict=True):
            count = {"holds": times} if equal else {"fails": times}
            tally.add({"call": name, "what": what}, {"phase": phase}, run, **count)
    yield from tally.candidates()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    what = "tensors of equal dtypes and shapes" if terms["what"] == "inputs" else "equal arguments"
    return f"all ranks give {what} to each call of {quoted(str(terms['call']))}{under(where)}"


class Watcher(QuietWatcher):
    """Keeps of each step what its collectives were given."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_call = by_call(invariants, "collective")
        self.wanted = frozenset(self._by_call)
        self._numbers: Counter[tuple[int, str, str]] = Counter()
        self._tellings: dict[int, Telling] = defaultdict(dict)

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """Nothing before it is known what the other ranks give."""
        key = (rank, event.name, event.subject)
        self._numbers[key] += 1
        if self._numbers[key] <= _MOST:
            for invariant in self._by_call.get((event.kind, event.name), ()):
                if meets(invariant.where, event, rank):
                    given = event.inputs if invariant.terms["what"] == "inputs" else event.arguments
                    call = f"call {self._numbers[key]} of group {event.subject}"
                    self._tellings[rank][invariant.id, call] = (given, event)
        yield from ()

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """What was kept of it goes."""
        for key in [key for key in self._numbers if key[0] == rank]:
            del self._numbers[key]
        yield from ()

    def told(self, rank: int) -> Telling:
        """What the collectives of the step were given."""
        return self._tellings.pop(rank, {})

    def compare(self, invariant: Invariant, key: str, own: object, other: object) -> str | None:
        """A call to which two ranks give other things."""
        self.seen.add(invariant.id)
        call = quoted(str(invariant.terms["call"]))
        what = "tensors" if invariant.terms["what"] == "inputs" else "arguments"
        return f"ranks do not give equal {what} to {call}" if own != other else None
