"""One incident, one finding: what comes back is counted, and of a chain of causes the first is named."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ta_runtime.facts import Suspicion
from ta_runtime.places import Place

_FOLLOWERS = 3


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
        same = (rule, suspicion.place, suspicion.subject) == (self.rule, first.place, first.subject)
        entry = (suspicion.place, f"{rule}: {suspicion.message}")
        if not same and entry not in self.followers and len(self.followers) < _FOLLOWERS:
            self.followers.append(entry)


class Incidents:
    """All incidents of a session, in the order they opened."""

    def __init__(self) -> None:
        self._incidents: dict[tuple[str, Place, str], Incident] = {}
        self._chains: dict[str, Incident] = {}

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._incidents.values())

    def __len__(self) -> int:
        return len(self._incidents)

    def add(self, suspicions: Iterable[tuple[str, Suspicion]], step: int) -> list[Incident]:
        """Take what the checks said of one step; returns the incidents that are new."""
        opened = []
        for rule, suspicion in sorted(suspicions, key=lambda entry: entry[1].order):
            incident = self._chains.get(suspicion.cause)
            if incident is not None:
                incident.follow(rule, suspicion)
            else:
                incident = self._incidents.get((rule, suspicion.place, suspicion.subject))
            if incident is None:
                incident = Incident(rule, suspicion, step, step, times=0)
                self._incidents[rule, suspicion.place, suspicion.subject] = incident
                if suspicion.cause:
                    self._chains[suspicion.cause] = incident
                opened.append(incident)
            if not incident.times or incident.last_step != step:
                incident.times += 1
                incident.last_step = step
        return opened
