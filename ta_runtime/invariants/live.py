"""Holds a run against invariants while it trains: a tracer takes what they are about, and each step is judged at its end.

What ranks have in common the first of them shows the others in the store of the process group, a step at a time. They look
there when they have ended a later step, and nobody waits.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from torch.overrides import get_overridable_functions

from ta_runtime import ranks
from ta_runtime.invariants import file, shipped
from ta_runtime.invariants.breaches import breaches, unseen
from ta_runtime.invariants.checking import Checker, values
from ta_runtime.invariants.template import Telling, Violation
from ta_runtime.trace.event import Event
from ta_runtime.trace.titles import of_function
from ta_runtime.trace.tracer import Tracer

if TYPE_CHECKING:
    from ta_runtime.session import Session

_FIRST = 10
"""Steps that are looked into at the beginning, where most of what is wrong shows."""
_SLOTS = 8
"""Steps of the first rank that lie in the store at a time."""
_LATER = 4
"""Steps after which a rank no longer looks for what the first showed of one."""
_OF_CONTENTS = {"distinct_arguments"}
"""Templates for which digests are taken of what loaders and modules return."""
_BACKWARD = "torch.Tensor.backward"


class Live:
    """The invariants that one session holds its run against.

    Raises:
        UsageError: a file cannot be read, or holds no invariants.
    """

    def __init__(self, session: "Session", files: Iterable[Path], *, every: int) -> None:
        self._session = session
        self._events: list[Event] = []  # of the step that runs
        known = file.merged([shipped.FILE, *files])
        held = [each for each in known if each.covered_by not in session.settings.rules]
        self._checker = Checker(held, lambda text: session.fail(text, text))
        wanted = frozenset(
            (kind, name)
            for kind, name in self._checker.wanted
            if kind != "op" or not name or _is_function(name)
        )
        self._tracer = Tracer(
            self._events.append,
            level="digests" if _OF_CONTENTS & {each.template for each in held} else "modules",
            every=every,
            first=_FIRST,
            names=session.names,
            wanted=wanted,
            on_step_over=session.guarded(self._end_step),
        )
        self._told: dict[int, Telling] = {}  # steps that are still to be compared
        self._rank = ranks.rank()

    def start(self) -> None:
        self._tracer.start()

    def stop(self) -> None:
        """Judge what came after the last step, and the run as a whole."""
        self._tracer.stop()
        self._end_step(self._tracer.step)
        self._tell(self._checker.over())
        for what in unseen(self._checker.not_seen):
            self._session.not_seen[what] = 1

    def let_go(self) -> None:
        """In a forked child: be silent."""
        self._tracer.forget()

    def compare(self, step: int | None = None) -> None:
        """Look at what the first rank shows of the steps that this one has ended; `step` is the last of them."""
        for number, own in list(self._told.items()):
            shown = ranks.looked(_topic(number), 0)
            if shown is not None and shown[0] == number:
                del self._told[number]
                self._tell(self._checker.compare(ranks.rank(), own, 0, shown[1]))
            elif step is not None and number + _LATER < step:
                del self._told[number]

    def _end_step(self, step: int) -> None:
        connected = ranks.connected()
        if connected:
            self._rank = ranks.rank()
        rank, events = self._rank, self._events.copy()
        self._events.clear()
        self._tell([*self._checker.see(events, rank), *self._checker.step_over(step, rank)])
        if (told := self._checker.told(rank)) and connected:
            if rank:
                self._told[step] = told
            else:
                ranks.post(_topic(step), (step, values(told)))
        self.compare(step)

    def _tell(self, violations: Iterable[Violation]) -> None:
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
