"""Holds a run against invariants while it trains: a tracer takes what they are about, and each step is judged at its end.

What ranks have in common the first of them shows the others in the store of the process group, a step at a time. They look
there when they have ended a later step, and nobody waits. What a rank that is ahead does not find there at its end it hands
over to the first, which then compares.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from torch.overrides import get_overridable_functions

from ta_runtime import ranks
from ta_runtime.invariants import file, shipped
from ta_runtime.invariants.breaches import breaches, unseen
from ta_runtime.invariants.checking import Checker, values
from ta_runtime.invariants.template import BrokenInvariant, Telling
from ta_runtime.naming import Names
from ta_runtime.settings import Settings
from ta_runtime.trace.event import Event
from ta_runtime.trace.titles import of_function
from ta_runtime.trace.tracer import Tracer

_FIRST = 10
"""Steps that are looked into at the beginning, where most of what is wrong shows."""
_SLOTS = 8
"""Steps of the first rank that lie in the store at a time."""
_LATER = 4
"""Steps after which a rank no longer looks for what the first showed of one."""
_AT_ONCE = 4096
"""Events, and violations, that are kept at most: an evaluation after the last step may go on for long."""
_OF_CONTENTS = {"distinct_arguments"}
"""Templates for which digests are taken of what loaders and modules return."""
_BACKWARD = "torch.Tensor.backward"


class Host(Protocol):
    """What a session gives the invariants that it holds its run against."""

    settings: Settings
    names: Names
    not_seen: dict[str, int]

    @property
    def started(self) -> bool: ...

    @property
    def paused(self) -> bool: ...

    def guarded(self, method: Callable[..., Any]) -> Callable[..., Any]: ...

    def ask(self, fact: str, value: object, step: int | None = None) -> None: ...

    def fail(self, what: str, subject: str) -> None: ...


class Live:
    """The invariants that one session holds its run against.

    Raises:
        UsageError: a file cannot be read, or holds no invariants.
    """

    def __init__(self, session: Host, files: Iterable[Path], *, every: int) -> None:
        self._session = session
        self._events: list[Event] = []  # of the step that runs, what the checker has not seen yet
        # in that step so far: told when it is over, as what one fault breaks in a step is one finding
        self._broken: list[BrokenInvariant] = []
        self._look = self._guarded(self._see)
        known = file.merged([shipped.FILE, *files])
        held = [each for each in known if each.covered_by not in session.settings.rules]
        self._checker = Checker(held, lambda text: session.fail(text, text))
        wanted = frozenset(
            (kind, name)
            for kind, name in self._checker.wanted
            if kind != "op" or not name or _is_function(name)
        )
        self._tracer = Tracer(
            self._take,
            level="digests" if _OF_CONTENTS & {each.template for each in held} else "modules",
            every=every,
            first=_FIRST,
            names=session.names,
            wanted=wanted,
            on_step_over=self._guarded(self._end_step),
        )
        self._told: dict[
            int, Telling
        ] = {}  # steps that are still to be compared; of the first rank the last ones
        self._rank = ranks.rank()

    def start(self) -> None:
        self._tracer.start()

    def stop(self) -> None:
        """Judge what came after the last step, and the run as a whole."""
        self._tracer.stop()
        if not self._session.started:  # it stopped after failures, and says from where on nothing was seen
            return
        self._end_step(self._tracer.step)
        self._tell(self._checker.over())
        for what in unseen(self._checker.not_seen):
            self._session.not_seen[what] = 1

    def let_go(self) -> None:
        """In a forked child: be silent."""
        self._tracer.forget()

    def compare(self, step: int | None = None) -> None:
        """Look at what the first rank shows of the steps that this one has ended; `step` is the last of them."""
        if not self._rank:
            return
        for number, own in list(self._told.items()):
            shown = ranks.looked(_topic(number), 0)
            if shown is not None and shown[0] == number:
                del self._told[number]
                self._tell(self._checker.compare(ranks.rank(), own, 0, shown[1]))
            elif step is not None and number + _LATER < step:
                del self._told[number]

    @property
    def uncompared(self) -> dict[int, dict[tuple[str, str], object]]:
        """What the first rank is to compare, as it had not shown its own in time: by step."""
        return {step: values(told) for step, told in self._told.items()} if self._rank else {}

    def compare_with(self, other: int, uncompared: Mapping[int, Mapping[tuple[str, str], object]]) -> None:
        """On the first rank: compare what another could not."""
        for step in sorted(uncompared.keys() & self._told.keys()):
            self._tell(self._checker.compare(self._rank, self._told[step], other, uncompared[step]))

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., None]:
        """As the session does, and once that has stopped after failures, be silent: nothing is asked any more."""
        guarded = self._session.guarded(method)

        def run(*args: object) -> None:
            if self._session.started:
                guarded(*args)
            else:
                self._tracer.fall_silent()
                self._events.clear()
                self._broken.clear()

        return run

    def _take(self, event: Event) -> None:
        if self._session.paused:
            return
        self._events.append(event)
        if len(self._events) >= _AT_ONCE:
            self._look()

    def _see(self) -> None:
        """Let the checker see what came since it last did."""
        if ranks.connected():
            self._rank = ranks.rank()
        events = self._events.copy()
        self._events.clear()
        self._broken += self._checker.see(events, self._rank)
        if len(self._broken) >= _AT_ONCE:
            self._tell_broken()

    def _tell_broken(self) -> None:
        broken = self._broken.copy()
        self._broken.clear()
        self._tell(broken)

    def _end_step(self, step: int) -> None:
        self._see()
        rank, connected = self._rank, ranks.connected()
        self._broken += self._checker.step_over(step, rank)
        self._tell_broken()
        if (told := self._checker.told(rank)) and connected:
            self._told[step] = told
            if not rank:
                self._told.pop(step - _SLOTS, None)
                ranks.post(_topic(step), (step, values(told)))
        self.compare(step)

    def _tell(self, violations: Iterable[BrokenInvariant]) -> None:
        for breach in breaches(violations):
            self._session.ask("violation", breach, breach.step)


def _is_function(name: str) -> bool:
    """Whether a name is that of a single function: a template that knows its events by name alone wants them of any kind."""
    space, _, last = name.rpartition(".")
    return space in _spaces() and not last[0].isupper() and name != _BACKWARD


@cache
def _spaces() -> frozenset[str]:
    """Where the functions are that a tensor can override: `torch`, `torch.nn.functional`, `torch.Tensor`."""
    known = get_overridable_functions().values()
    names = (of_function(each) for functions in known for each in functions)
    return frozenset(name.rpartition(".")[0] for name in names if name)


def _topic(step: int) -> str:
    return f"invariants/{step % _SLOTS}"
