"""A law, of which `terms` name one: what holds of every training loop and is learned nowhere; `laws` says what they are."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.laws import LAWS, Breach, Law
from ta_runtime.invariants.template import Candidate, Telling, Violation
from ta_runtime.invariants.words import under
from ta_runtime.trace.event import Event

KINDS = frozenset(kind for law in LAWS.values() for kind, _ in law.wanted)


def candidates(events: Events) -> Iterator[Candidate]:
    """None: a law needs no trace."""
    yield from ()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    law = LAWS.get(str(terms["law"]))
    return f"{law.says if law is not None else terms['law']}{under(where)}"


class Watcher:
    """One of each law for each rank. A law that this version does not know is passed over."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._invariants = [each for each in invariants if each.terms["law"] in LAWS]
        self._laws: dict[int, dict[str, Law]] = {}  # by rank and the id of the invariant
        self._comparing: dict[tuple[str, str], Law] = {}  # by id and what is compared: of two ranks each time
        self.wanted = frozenset[tuple[str, str]]().union(*(_law(each).wanted for each in self._invariants))

    @property
    def seen(self) -> Collection[str]:
        """The ids of the laws that were put to the test."""
        tested = {name for laws in self._laws.values() for name, law in laws.items() if law.is_tested}
        return tested | {name for (name, _), law in self._comparing.items() if law.is_tested}

    def see(self, event: Event, rank: int) -> Iterator[Violation]:
        """What an event breaks."""
        laws = self._of(rank)
        for invariant in self._invariants:
            law = laws[invariant.id]
            if (event.kind, "") in law.wanted or (event.kind, event.name) in law.wanted:
                yield from self._violations(invariant, law.see(event), rank)

    def step_over(self, step: int, rank: int) -> Iterator[Violation]:
        """What the end of a rank's step shows."""
        laws = self._of(rank)
        for invariant in self._invariants:
            yield from self._violations(invariant, laws[invariant.id].step_over(step), rank)

    def over(self) -> Iterator[Violation]:
        """Nothing is left to say."""
        yield from ()

    def told(self, rank: int) -> Telling:
        """What the laws of several ranks compare, each with the number of its rank."""
        laws = self._of(rank)
        return {
            (invariant.id, key): ((rank, value), event)
            for invariant in self._invariants
            for key, (value, event) in laws[invariant.id].told().items()
        }

    def compare(self, invariant: Invariant, key: str, own: object, other: object) -> str | None:
        """What two ranks show to be broken."""
        assert isinstance(own, tuple)
        assert isinstance(other, tuple)
        (rank, mine), (peer, theirs) = own, other
        pair = (invariant.id, f"{min(rank, peer)} {max(rank, peer)}")
        law = self._comparing.setdefault(pair, _law(invariant)())
        return law.compare(key, mine, theirs)

    def _of(self, rank: int) -> dict[str, Law]:
        laws = self._laws.get(rank)
        if laws is None:
            laws = self._laws[rank] = {each.id: _law(each)() for each in self._invariants}
        return laws

    def _violations(self, invariant: Invariant, breaches: Iterator[Breach], rank: int) -> Iterator[Violation]:
        for event, message, evidence in breaches:
            if meets(invariant.where, event, rank):
                yield Violation(invariant, event, message, evidence, rank)


def _law(invariant: Invariant) -> type[Law]:
    return LAWS[str(invariant.terms["law"])]
