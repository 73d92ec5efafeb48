"""What a law is, and how it tells the calls of a loop apart."""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from ta_runtime.trace.event import Event, Flag

SCHEDULERS = "torch.optim.lr_scheduler."
SCALER = "torch.amp.GradScaler."
ABSENT, _WHOLE, _RAISED = int(Flag.NONE | Flag.ZERO), int(Flag.WHOLE), int(Flag.RAISED)
_UNSEEN = int(Flag.UNSEEN)

INSIDE = frozenset({("gradient", ""), ("parameter", ""), ("loop", "")})
"""Kind and name of the events that a call of the loop is judged by."""

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
    """Kind and name of the events that it sees; the name is empty where it sees all of a kind."""
    judges: ClassVar[bool] = False
    """Whether it is asked about calls of the loop."""

    def __init__(self) -> None:
        self.is_tested = False
        """Whether what it is about did happen."""

    def see(self, event: Event) -> Iterable[Breach]:
        """What an event shows to be broken."""
        return ()

    def judge(self, call: Event, inside: "Inside") -> Iterable[Breach]:
        """What a call of the loop shows in which gradients were looked at."""
        return ()

    def step_over(self, step: int) -> Iterable[Breach]:
        """What the end of a step does."""
        return ()

    def told(self) -> dict[str, tuple[object, Event]]:
        """What other ranks are to compare of the step that is over, by what it is of."""
        return {}

    def compare(self, key: str, own: object, other: object) -> str | None:
        """The message of a breach, if what two ranks told breaks it."""
        return None


def is_new(state: Event) -> bool:
    """Whether it is the first of its name, or of a module that took the name of another, as in a sweep: what was known by that
    name says nothing of it. One whose content is never taken is not told from another."""
    return bool(state.flags & _UNSEEN) and state.digest is not None


def is_step(event: Event) -> bool:
    """Whether it is that of an optimizer, and its states were looked at."""
    return steps(event) and bool(event.flags & _WHOLE) and not event.flags & _RAISED


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
