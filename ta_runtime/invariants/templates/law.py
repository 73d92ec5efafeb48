"""A law, of which `terms` name one: what holds of every training loop and is learned nowhere; `laws` says what they are."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.laws import LAWS, Breach, Law
from ta_runtime.invariants.laws.law import INSIDE, Inside
from ta_runtime.invariants.template import BrokenInvariant, Candidate, Telling
from ta_runtime.invariants.words import under
from ta_runtime.trace.event import Event

KINDS = frozenset(kind for law in LAWS.values() for kind, _ in law.wanted | INSIDE)


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
        self._of_rank: dict[int, _OfRank] = {}
        self._comparing: dict[tuple[str, str], Law] = {}  # by id and what is compared: of two ranks each time
        laws = [_law(each) for each in self._invariants]
        self.wanted = frozenset[tuple[str, str]]().union(
            *(law.wanted | INSIDE if law.judges else law.wanted for law in laws)
        )

    @property
    def seen(self) -> Collection[str]:
        """The ids of the laws that were put to the test."""
        tested = {name for own in self._of_rank.values() for name, law in own.laws.items() if law.is_tested}
        return tested | {name for (name, _), law in self._comparing.items() if law.is_tested}

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]:
        """What an event breaks."""
        own = self._of(rank)
        found: list[BrokenInvariant] = []
        for invariant, law in own.seeing(event):
            if breaches := law.see(event):
                found += self._violations(invariant, breaches, rank)
        if event.kind in ("gradient", "parameter"):
            own.inside.see(event)
        elif event.kind == "loop" and (inside := own.inside.taken(event)).gradients:
            for invariant, law in own.judging:
                if breaches := law.judge(event, inside):
                    found += self._violations(invariant, breaches, rank)
        return found

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """What the end of a rank's step shows."""
        laws = self._of(rank).laws
        for invariant in self._invariants:
            yield from self._violations(invariant, laws[invariant.id].step_over(step), rank)

    def over(self) -> Iterator[BrokenInvariant]:
        """Nothing is left to say."""
        yield from ()

    def told(self, rank: int) -> Telling:
        """What the laws of several ranks compare, each with the number of its rank."""
        laws = self._of(rank).laws
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

    def _of(self, rank: int) -> "_OfRank":
        own = self._of_rank.get(rank)
        if own is None:
            own = self._of_rank[rank] = _OfRank(self._invariants)
        return own

    def _violations(
        self, invariant: Invariant, breaches: Iterable[Breach], rank: int
    ) -> Iterator[BrokenInvariant]:
        for event, message, evidence in breaches:
            if meets(invariant.where, event, rank):
                yield BrokenInvariant(invariant, event, message, evidence, rank)


class _OfRank:
    """The laws of one rank, and which of them sees what; the states inside of the call that is open, for all of them."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self.laws = {each.id: _law(each)() for each in invariants}
        """By the ids of their invariants."""
        self._pairs = [(each, self.laws[each.id]) for each in invariants]
        self.judging = [(each, law) for each, law in self._pairs if law.judges]
        self.inside = Inside()
        self._seeing: dict[tuple[str, str], list[tuple[Invariant, Law]]] = {}  # by what has come so far

    def seeing(self, event: Event) -> list[tuple[Invariant, Law]]:
        """Those that see events of this kind and name."""
        key = (event.kind, event.name)
        seeing = self._seeing.get(key)
        if seeing is None:
            wanted = {key, (event.kind, "")}
            seeing = self._seeing[key] = [(each, law) for each, law in self._pairs if wanted & law.wanted]
        return seeing


def _law(invariant: Invariant) -> type[Law]:
    return LAWS[str(invariant.terms["law"])]
