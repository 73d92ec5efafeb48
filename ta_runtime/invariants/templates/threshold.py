"""A result keeps within a bound that it was given: at most an argument named `max...`, at least one named `min...`.

The result is a number, or the size of the last dimension of a tensor. A bound that no result comes near is chance: one
must have come within a fifth of it, as TrainCheck (OSDI'25), which calls it APIOutput, has it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.signatures import outputs
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, by_call
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"loop", "module", "op"})
_RAISED = int(Flag.RAISED)
_SIDES = ("max", "min")
_NEAR = 0.2

_QUERY = f"""
select run, phase, first, kind, name, arguments, dtype, shape, min(value), max(value), count(*) as times
from events
where kind in ('loop', 'module', 'op') and not {has(Flag.RAISED)}
  and (contains(lower(arguments), 'max') or contains(lower(arguments), 'min'))
group by run, phase, first, kind, name, arguments, dtype, shape
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """The bounds that results may keep within."""
    near: set[tuple[str, str, str]] = set()
    tally = Tally("threshold")
    for run, phase, rank, kind, name, arguments, dtype, shape, least, most, times in events.rows(_QUERY):
        attributes = {"phase": phase, "rank": rank}
        for argument, side, bound in _bounds(arguments):
            result = _result(most if side == "max" else least, dtype, shape)
            if result is None:
                continue
            if abs(result - bound) <= _NEAR * abs(bound):
                near.add((kind, name, argument))
            terms = {"kind": kind, "call": name, "argument": argument, "side": side}
            holds = _keeps(result, side, bound)
            tally.add(terms, attributes, run, **({"holds": times} if holds else {"fails": 1}))
    for candidate in tally.candidates():
        said = candidate.terms
        if (said["kind"], said["call"], said["argument"]) in near:
            yield candidate


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    how = "at most" if terms["side"] == "max" else "at least"
    call, argument = quoted(str(terms["call"])), quoted(str(terms["argument"]))
    return f"the result of {call} is always {how} its {argument}{under(where)}"


class Watcher(QuietWatcher):
    """Looks at each call."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_call = by_call(invariants)
        self.wanted = frozenset(self._by_call)

    def see(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        """A result beyond its bound."""
        if event.flags & _RAISED:
            return
        for invariant in self._by_call.get((event.kind, event.name), ()):
            terms = invariant.terms
            for argument, side, bound in _bounds(event.arguments):
                result = _result(event.value, event.dtype, event.shape)
                if (argument, side) != (terms["argument"], terms["side"]) or result is None:
                    continue
                if not meets(invariant.where, event, rank):
                    continue
                self.seen.add(invariant.id)
                if not _keeps(result, side, bound):
                    beyond = "more" if side == "max" else "less"
                    message = f"the result of {quoted(event.name)} is {beyond} than its {quoted(argument)}"
                    yield BrokenInvariant(
                        invariant, event, message, {"result": result, argument: bound}, rank
                    )


@lru_cache(maxsize=4096)
def _bounds(arguments: str) -> tuple[tuple[str, str, float], ...]:
    """The arguments that are bounds: name, side and number."""
    given = json.loads(arguments) if arguments else {}
    return tuple(
        (name, side, float(value))
        for name, value in given.items()
        for side in _SIDES
        if side in name.lower() and isinstance(value, (int, float)) and not isinstance(value, bool)
    )


def _result(value: float | None, dtype: str, shape: str) -> float | None:
    if value is not None:
        return value
    out = outputs(dtype, shape)
    return float(out[0][1][-1]) if out and out[0][1] else None


def _keeps(result: float, side: str, bound: float) -> bool:
    return result <= bound if side == "max" else result >= bound
