"""A switch of a function always has one value: attention drops nothing while it evaluates, `dropout` is on while it trains.

Of all arguments these alone are learned, as others may go by the size of a batch, by its padding, or by the length of a run.
Of a phase that no trace shows nothing is known. TrainCheck (OSDI'25) has it in its EventContain, whose
child is a call with the arguments that all such calls share.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, by_call
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"op"})

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_SWITCHES: dict[str, tuple[str, ...]] = {
    _ATTENTION: ("dropout_p",),
    "torch.nn.functional.batch_norm": ("training",),
    **{f"torch.nn.functional.{name}": ("p", "training") for name in _DROPOUTS},
}
_PHASES = ("train", "eval")
_RAISED = int(Flag.RAISED)

_QUERY = f"""
select run, phase, first, autocast, name, arguments, count(*) as times from events
where kind = 'op' and name in {tuple(_SWITCHES)} and not {has(Flag.RAISED)}
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """Each value that a switch ever had."""
    seen: dict[tuple[str, str], list[tuple[dict[str, str], int, int, float]]] = defaultdict(list)
    for run, phase, rank, autocast, name, arguments, times in events.rows(_QUERY):
        attributes = {"phase": phase, "rank": rank, "autocast": autocast}
        for argument in _SWITCHES[name]:
            value = _value(argument, arguments)
            if value is not None:
                seen[name, argument].append((attributes, run, times, value))
    tally = Tally("constant_argument")
    for (name, argument), calls in seen.items():
        missing = set(_PHASES) - {attributes["phase"] for attributes, *_ in calls}
        for value in {value for *_, value in calls}:
            terms: dict[str, str | int | float] = {"call": name, "argument": argument, "value": value}
            for attributes, run, times, other in calls:
                count = {"holds": times} if other == value else {"fails": times}
                tally.add(terms, attributes, run, **count)
                for phase in missing:
                    tally.add(terms, {**attributes, "phase": phase}, run, fails=1)
    yield from tally.candidates()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    return f"{quoted(str(terms['call']))} always has {terms['argument']} {terms['value']}{under(where)}"


class Watcher(QuietWatcher):
    """Looks at the arguments of each call."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_call = by_call(invariants, "op")
        self.wanted = frozenset(self._by_call)

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]:
        """A switch that is not as it always was."""
        if event.flags & _RAISED:
            return ()
        return [*self._judged(event, rank)]

    def _judged(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        for invariant in self._by_call.get((event.kind, event.name), ()):
            argument, always = str(invariant.terms["argument"]), invariant.terms["value"]
            value = _value(argument, event.arguments)
            if value is None or not meets(invariant.where, event, rank):
                continue
            self.seen.add(invariant.id)
            if value != always:
                message = f"{quoted(event.name)} has {argument} {value}"
                yield BrokenInvariant(invariant, event, message, {"was": value, "always": always}, rank)


@lru_cache(maxsize=1024)
def _value(argument: str, arguments: str) -> float | bool | None:
    """What was given; of attention that is given none, that it drops nothing. None: it is not known."""
    value = (json.loads(arguments) if arguments else {}).get(
        argument, 0.0 if argument == "dropout_p" else None
    )
    if argument == "training":
        return value if isinstance(value, bool) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
