"""Before each call comes another, since the one before: each step has a backward pass of its own.

TrainCheck's APISequence, `FunctionCover`. In `terms`, `call` comes after a new `after`. It says more than `lead` with the two
exchanged, as it holds for the first call too.
"""

from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.sequence import KINDS, Follower, Order, said
from ta_runtime.invariants.template import Candidate
from ta_runtime.invariants.words import under

__all__ = ["KINDS", "Watcher", "candidates", "sentence"]


def candidates(events: Events) -> Iterator[Candidate]:
    """Each pair of calls, with counts of the first one's."""
    order = Order(events)
    for call, after in order.pairs():
        groups = order.counts(call, after, first=True)
        yield Candidate("cover", {"call": call.title, "after": after.title}, groups)


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    after = said(terms["after"]).removeprefix("a ").removeprefix("new ")
    return f"before each {said(terms['call']).removeprefix('a ')} there is always a new {after}{under(where)}"


class Watcher(Follower):
    """Looks back from each call to the one before, or to the beginning."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__(invariants, "call", "after", first=True, message=_message)


def _message(call: str, after: str) -> str:
    return f"{said(call)} comes without {said(after)} before it"
