"""Holds the events of a run against invariants, over a trace or while it trains.

Each template's `Watcher` sees the events that it wants. One that raises is switched off and the others go on.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from ta_lint.core.errors import oneline
from ta_runtime.faults import keep
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Comparer, QuietWatcher, Telling, Watcher
from ta_runtime.trace.event import Event

_T = TypeVar("_T")


class Checker:
    """Says which invariants a run breaks. Those that are suppressed are passed over.

    Args:
        invariants: of any templates.
        on_failure: called with a sentence when a template is switched off because it raised.

    Raises:
        ModuleNotFoundError: there is no such template.
    """

    def __init__(
        self, invariants: Iterable[Invariant], on_failure: Callable[[str], object] = lambda text: None
    ) -> None:
        self.invariants = {each.id: each for each in invariants if not each.suppressed}
        """Those that are looked at, by id."""
        self._on_failure = on_failure
        by_template: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in self.invariants.values():
            by_template[invariant.template].append(invariant)
        self._watchers: dict[str, Watcher] = {
            name: template(name).Watcher(own) for name, own in sorted(by_template.items())
        }
        self.wanted = frozenset[tuple[str, str]]().union(*(each.wanted for each in self._watchers.values()))
        """Kind and name of the events that are looked at; the name is empty where all of a kind are."""
        self._wanting: dict[tuple[str, str], list[str]] = {}  # templates, by what has come so far
        self._stepped = [
            name
            for name, each in self._watchers.items()
            if getattr(type(each), "step_over", None) is not QuietWatcher.step_over
        ]
        self._comparers = [name for name, each in self._watchers.items() if isinstance(each, Comparer)]

    @property
    def not_seen(self) -> list[Invariant]:
        """The invariants about what never happened: nothing can be said of them."""
        seen = {one for watcher in self._watchers.values() for one in watcher.seen}
        return [invariant for invariant in self.invariants.values() if invariant.id not in seen]

    def see(self, events: Iterable[Event], rank: int = 0) -> list[BrokenInvariant]:
        """What these events break. Those of a rank come in the order in which they are told, some at a time."""
        by_template: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            wanting = self._wanting.get((event.kind, event.name))
            for name in self._who_wants(event) if wanting is None else wanting:
                by_template[name].append(event)
        return [
            violation
            for name, own in by_template.items()
            for violation in self._asked(name, _seen, own, rank)
        ]

    def step_over(self, step: int, rank: int = 0) -> list[BrokenInvariant]:
        """What the end of a rank's step shows to be broken; what was kept of it goes."""
        return [violation for name in self._stepped for violation in self._asked(name, _ended, step, rank)]

    def over(self) -> list[BrokenInvariant]:
        """What the end of the run shows to be broken."""
        return [violation for name in list(self._watchers) for violation in self._asked(name, _over)]

    # -- across ranks -----------------------------------------------------------------------------------------

    def told(self, rank: int = 0) -> Telling:
        """What other ranks need of the step that this rank has just ended; right after `step_over`."""
        telling: Telling = {}
        for name in self._comparers:
            self._asked(name, _told, rank, telling)
        return telling

    def compare(
        self, rank: int, own: Telling, other: int, values: Mapping[tuple[str, str], object]
    ) -> list[BrokenInvariant]:
        """What two ranks show to be broken: what one told of a step, and the values of what another did of the same."""
        found: list[BrokenInvariant] = []
        ranks = ",".join(map(str, sorted((rank, other))))
        for key, (value, event) in own.items():
            invariant = self.invariants.get(key[0])
            if invariant is None or key not in values:
                continue
            for message in self._asked(invariant.template, _compared, invariant, key[1], value, values[key]):
                found.append(BrokenInvariant(invariant, event, message, {"ranks": ranks}, rank))
        return found

    def _who_wants(self, event: Event) -> list[str]:
        key = (event.kind, event.name)
        self._wanting[key] = [
            name
            for name, watcher in self._watchers.items()
            if key in watcher.wanted or (event.kind, "") in watcher.wanted
        ]
        return self._wanting[key]

    # -- what goes wrong --------------------------------------------------------------------------------------

    def _asked(self, name: str, ask: Callable[..., Iterable[_T]], *args: object) -> list[_T]:
        watcher = self._watchers.get(name)
        if watcher is None:  # it was switched off
            return []
        try:
            return list(ask(watcher, *args))
        except Exception as error:  # noqa: BLE001 - the run goes on, and so do the other templates
            keep(error)
            del self._watchers[name]
            self._on_failure(f"the invariants of `{name}` raised {type(error).__name__}: {oneline(error)}")
            return []


def values(telling: Telling) -> dict[tuple[str, str], object]:
    """What of it other ranks need."""
    return {key: value for key, (value, _) in telling.items()}


def _seen(watcher: Watcher, events: Iterable[Event], rank: int) -> Iterator[BrokenInvariant]:
    for event in events:
        yield from watcher.see(event, rank)


def _ended(watcher: Watcher, step: int, rank: int) -> Iterable[BrokenInvariant]:
    return watcher.step_over(step, rank)


def _over(watcher: Watcher) -> Iterable[BrokenInvariant]:
    return watcher.over()


def _told(watcher: Comparer, rank: int, into: Telling) -> tuple[()]:
    into.update(watcher.told(rank))
    return ()


def _compared(watcher: Comparer, invariant: Invariant, key: str, own: object, other: object) -> Iterator[str]:
    if (message := watcher.compare(invariant, key, own, other)) is not None:
        yield message


@cache
def template(name: str) -> Any:
    """The module of a template, by its name.

    Raises:
        ModuleNotFoundError: there is none.
    """
    return import_module(f"ta_runtime.invariants.templates.{name}")
