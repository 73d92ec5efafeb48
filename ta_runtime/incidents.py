"""One incident, one finding: what comes back is counted, and of a chain of causes the first is named."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ta_runtime.facts import Refutation, Suspicion
from ta_runtime.probes.places import Place

_FOLLOWERS = 3
_MOST_REFUTED = 2000
"""Places of which a refutation is kept: of more, the first."""
LOOKS = 30
"""Steps that must be looked at before what depends on data is refuted. What showed in none of n independent looks happens in
at most 3 / n of the steps, with 95 % confidence (the rule of three): in no more than each tenth."""
LATEST = 0.9
"""Where in the run the last of them must be, as a share of its steps: training moves values, and the first batches say
little about the last."""


@dataclass(slots=True)
class Incident:
    """A pitfall at a place, as it first showed. Steps are those of the optimizer, from 0."""

    rule: str
    suspicion: Suspicion
    first_step: int
    last_step: int
    times: int = 1
    ranks: set[int] = field(default_factory=set)
    followers: list[tuple[Place, str]] = field(default_factory=list)
    """What the same cause led to elsewhere."""

    def follow(self, rule: str, suspicion: Suspicion) -> None:
        """Note what the same cause led to, unless it is this again."""
        first = self.suspicion
        same = (rule, suspicion.identity) == (self.rule, first.identity)
        entry = (suspicion.place, f"{rule}: {suspicion.message}")
        if not same and entry not in self.followers and len(self.followers) < _FOLLOWERS:
            self.followers.append(entry)


@dataclass(slots=True)
class Refuted:
    """A place where a check looked and did not find its pitfall, with what the last look measured."""

    rule: str
    refutation: Refutation
    last_step: int
    times: int = 0
    """In how many steps."""
    ranks: set[int] = field(default_factory=set)

    def stands(self, steps: int, first: int) -> bool:
        """Whether so much looking refutes, after so many steps, of which one had the number `first`."""
        if not self.refutation.of_data or self.times >= steps:
            return True
        return self.times >= LOOKS and self.last_step + 1 - first >= LATEST * steps


class Incidents:
    """All incidents of a session, in the order they opened."""

    def __init__(self) -> None:
        self._incidents: dict[tuple[str, tuple[Place, str, str]], Incident] = {}
        self._chains: dict[str, Incident] = {}
        self._refuted: dict[tuple[str, Place], Refuted] = {}
        self.first = self.steps = 0
        """The number of the run's first step, and how many there were so far."""

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._incidents.values())

    def __len__(self) -> int:
        return len(self._incidents)

    @property
    def refuted(self) -> list[Refuted]:
        """Where the checks looked often enough and found nothing, then or at another time."""
        found = {(incident.rule, incident.suspicion.place) for incident in self}
        return [
            refuted
            for key, refuted in self._refuted.items()
            if key not in found and refuted.stands(self.steps, self.first)
        ]

    def add(self, said: Iterable[tuple[str, Suspicion | Refutation]], step: int) -> list[Incident]:
        """Take what the checks said of one step; returns the incidents that are new."""
        opened = []
        suspicions: list[tuple[str, Suspicion]] = []
        for rule, saying in said:
            if isinstance(saying, Suspicion):
                suspicions.append((rule, saying))
            else:
                self._refute(rule, saying, step)
        for rule, suspicion in sorted(suspicions, key=lambda entry: entry[1].order):
            incident = self._chains.get(suspicion.cause)
            if incident is not None:
                incident.follow(rule, suspicion)
            else:
                incident = self._incidents.get((rule, suspicion.identity))
            if incident is None:
                incident = Incident(rule, suspicion, step, step, times=0)
                self._incidents[rule, suspicion.identity] = incident
                if suspicion.cause:
                    self._chains[suspicion.cause] = incident
                opened.append(incident)
            elif incident.suspicion.is_note and (rule, suspicion.is_note) == (incident.rule, False):
                incident.suspicion = suspicion  # it does harm now
                opened.append(incident)
            if not incident.times or incident.last_step != step:
                incident.times += 1
                incident.last_step = step
        return opened

    def _refute(self, rule: str, refutation: Refutation, step: int) -> None:
        key = (rule, refutation.place)
        refuted = self._refuted.get(key)
        if refuted is None:
            if len(self._refuted) == _MOST_REFUTED:
                return
            refuted = self._refuted[key] = Refuted(rule, refutation, step)
        refuted.times += not refuted.times or refuted.last_step != step
        refuted.refutation, refuted.last_step = refutation, step
