"""Between two calls of one comes another: after each step, before the next, the gradients are cleared.

TrainCheck's APISequence, `FunctionLead`. In `terms`, `then` comes between two calls of `call`.
"""

from collections.abc import Iterator, Mapping, Sequence

from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.sequence import KINDS, Follower, Order, said
from ta_runtime.invariants.template import Candidate
from ta_runtime.invariants.words import under

__all__ = ["KINDS", "Watcher", "candidates", "sentence"]


def candidates(events: Events) -> Iterator[Candidate]:
    """Each pair of calls, with counts of the first one's from one to the next."""
    order = Order(events)
    for call, then in order.pairs():
        groups = order.counts(call, then, first=False)
        yield Candidate("lead", {"call": call.title, "then": then.title}, groups)


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    return f"after {said(terms['call'])} there is always {said(terms['then'])} before the next{under(where)}"


class Watcher(Follower):
    """Looks back from each call to the one before."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__(invariants, "call", "then", first=False, message=_message)


def _message(call: str, then: str) -> str:
    return f"{said(call)} follows another without {said(then)} in between"
