"""What a law is, and how it tells the calls of a loop apart."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from ta_runtime.trace.event import Event, Flag

SCHEDULERS = "torch.optim.lr_scheduler."
SCALER = "torch.amp.GradScaler."
ABSENT = Flag.NONE | Flag.ZERO


Evidence = dict[str, float | int | str]


class Breach(NamedTuple):
    """What breaks a law, in the words of a finding."""

    event: Event
    message: str
    evidence: Evidence


class Law:
    """Sees the events of one rank, those of `wanted` among them, and keeps no more than one entry for each tensor."""

    name: ClassVar[str]
    says: ClassVar[str]
    """The sentence that people read."""
    wanted: ClassVar[frozenset[tuple[str, str]]]
    """Kind and name of the events that it needs; the name is empty where it needs all of a kind."""

    def __init__(self) -> None:
        self.is_tested = False
        """Whether what it is about did happen."""

    def see(self, event: Event) -> Iterator[Breach]:
        """What an event shows to be broken."""
        yield from ()

    def step_over(self, step: int) -> Iterator[Breach]:
        """What the end of a step does."""
        yield from ()

    def told(self) -> dict[str, tuple[object, Event]]:
        """What other ranks are to compare of the step that is over, by what it is of."""
        return {}

    def compare(self, key: str, own: object, other: object) -> str | None:
        """The message of a breach, if what two ranks told breaks it."""
        return None


def is_step(event: Event) -> bool:
    """Whether it is that of an optimizer, and its states were looked at."""
    return steps(event) and bool(event.flags & Flag.WHOLE) and not event.flags & Flag.RAISED


def steps(event: Event) -> bool:
    """Whether it is the step of an optimizer."""
    return (
        event.kind == "loop"
        and event.name.endswith(".step")
        and not event.name.startswith((SCHEDULERS, SCALER))
    )


class Inside:
    """The states that were told inside of the call that is open, by their subjects: forgotten when it is over."""

    def __init__(self) -> None:
        self.gradients: dict[str, Event] = {}
        self.parameters: dict[str, Event] = {}

    def see(self, event: Event) -> None:
        if event.kind == "gradient":
            self.gradients[event.subject] = event
        elif event.kind == "parameter":
            self.parameters[event.subject] = event

    def taken(self, call: Event) -> "Inside":
        """Those of this call that is over; nothing is left."""
        found = Inside()
        found.gradients = {name: each for name, each in self.gradients.items() if each.parent == call.seq}
        found.parameters = {name: each for name, each in self.parameters.items() if each.parent == call.seq}
        self.gradients, self.parameters = {}, {}
        return found
