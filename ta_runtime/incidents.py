"""One incident, one finding: what comes back is counted, and of a chain of causes the first is named."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from ta_runtime.facts import Refutation, Said, Suspicion, Unobserved
from ta_runtime.probes.places import Place, Scope

_FOLLOWERS = 3
_MOST_LOOKS = 2000
"""Places of which a look is kept: of more, the first."""
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
    scopes: tuple[Scope, ...] = ()
    """If its cause may be elsewhere, the user's functions and classes that took part in steps."""

    def follow(self, rule: str, suspicion: Suspicion) -> None:
        """Note what the same cause led to, unless it is this again."""
        first = self.suspicion
        same = (rule, suspicion.identity) == (self.rule, first.identity)
        entry = (suspicion.place, f"{rule}: {suspicion.message}")
        if not same and entry not in self.followers and len(self.followers) < _FOLLOWERS:
            self.followers.append(entry)


@dataclass(slots=True)
class Inspection:
    """A place where a check looked and did not find its pitfall, with what its last look said, or why it could not look."""

    rule: str
    said: Refutation | Unobserved
    last_step: int
    times: int = 0
    """In how many steps."""
    ranks: set[int] = field(default_factory=set)

    @property
    def refutes(self) -> bool:
        return isinstance(self.said, Refutation)

    def after(self, steps: int, first: int) -> "Inspection":
        """What it comes to after so many steps, of which one had the number `first`: too little looking refutes nothing."""
        if not isinstance(self.said, Refutation) or not self.said.of_data or self.times >= steps:
            return self
        if self.times >= LOOKS and self.last_step + 1 - first >= LATEST * steps:
            return self
        return self._unobserved(f"looked at {self.times} of {steps} steps, too few to refute")

    def beside(self, incidents: "Iterable[Incident]") -> "Inspection":
        """What it comes to beside these incidents: what one of them hides, no look refutes."""
        if not isinstance(self.said, Refutation) or self.said.rests_on is None:
            return self
        for incident in incidents:
            suspicion = incident.suspicion
            if suspicion.hides is self.said.rests_on and incident.rule != self.rule:
                where = f"{PurePath(suspicion.place.path).name}:{suspicion.place.line}"
                return self._unobserved(f"{self.said.rests_on}, says {incident.rule} at {where}")
        return self

    def _unobserved(self, because: str) -> "Inspection":
        return replace(self, said=Unobserved(self.said.place, because, self.said.related))


class Incidents:
    """All incidents of a session, in the order they opened."""

    def __init__(self) -> None:
        self._incidents: dict[tuple[str, tuple[Place, str, str]], Incident] = {}
        self._chains: dict[str, Incident] = {}
        self._inspected: dict[tuple[str, Place], Inspection] = {}
        self.first = self.steps = 0
        """The number of the run's first step, and how many there were so far."""

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._incidents.values())

    def __len__(self) -> int:
        return len(self._incidents)

    @property
    def inspected(self) -> list[Inspection]:
        """Where the checks looked, or could not, and found nothing, then or at another time."""
        found = {(incident.rule, incident.suspicion.place) for incident in self}
        return [
            look.after(self.steps, self.first) for key, look in self._inspected.items() if key not in found
        ]

    def add(self, said: Iterable[tuple[str, Said]], step: int) -> list[Incident]:
        """Take what the checks said of one step; returns the incidents that are new."""
        opened = []
        suspicions: list[tuple[str, Suspicion]] = []
        for rule, saying in said:
            if isinstance(saying, Suspicion):
                suspicions.append((rule, saying))
            else:
                self._look(rule, saying, step)
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

    def _look(self, rule: str, said: Refutation | Unobserved, step: int) -> None:
        key = (rule, said.place)
        look = self._inspected.get(key)
        if look is None:
            if len(self._inspected) == _MOST_LOOKS:
                return
            look = self._inspected[key] = Inspection(rule, said, step)
        elif look.refutes and not isinstance(said, Refutation):
            return
        elif not look.refutes and isinstance(said, Refutation):
            look.times = 0
        look.times += not look.times or look.last_step != step
        look.said, look.last_step = said, step
