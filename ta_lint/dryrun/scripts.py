"""The scripts of a project, each run dry once, whatever file is linted: what happens in a file is what the scripts that use it do there."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ta_lint.core.errors import Unreadable
from ta_lint.core.source import decode
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import ran
from ta_lint.dryrun.machine.machine import MOST_STEPS, Machine
from ta_lint.dryrun.program import Program, code_of
from ta_lint.dryrun.values import Function
from ta_lint.events.event import Event
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion
from ta_lint.project.project import Project
from ta_lint.project.trail import Answer, WholeText

T = TypeVar("T")
Check = tuple[Callable[[Run], Iterator[Said]], ...]

LEAST_STEPS = 1_000
STEPS_OF_A_BYTE = 0.5
"""What an entry of a file that is linted may take: the work grows with its text, whatever loops it has."""
_DECLARATION = re.compile(r"\A((?:[^\n]*\n)?[ \t\f]*#[^\n]*?)coding(?=[:=])")
"""That of an encoding, which the text no longer has here."""
MOST_FILES = 12
"""Files that a script may import. What more of them give is not known."""
MOST_EVENTS = 8
MOST_RUNS = 64
"""Scripts of which the events, and what they tell, are kept."""


class Key(NamedTuple):
    """Where a function stands."""

    file: str
    line: int
    column: int


class _Ran:
    """A script that has run."""

    def __init__(self, machine: Machine) -> None:
        self.events = machine.events
        self.guesses = [
            (frozenset(map(_key, functions)), begin, end) for functions, begin, end in machine.guesses
        ]
        own = machine.events[: machine.trained]
        self.calls = frozenset(_key(one) for event in own if event.certain for one in event.functions)
        """The functions that it certainly calls, itself or in those of its functions that train."""

    def without(self, called: frozenset[Key]) -> list[Event]:
        """What happens, but for what is guessed of functions that others call."""
        dropped = [(begin, end) for functions, begin, end in self.guesses if functions <= called]
        if not dropped:
            return self.events
        left, start = list[Event](), 0
        for begin, end in sorted(dropped):
            left += self.events[start:begin]
            start = max(start, end)
        return left + self.events[start:]


class Told:
    """What checks say of the run of a script."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._said: dict[str, list[Suspicion]] = {}

    def said(self, rule: str, check: Check) -> list[Suspicion]:
        """What the check of a rule says, wherever that is."""
        if rule not in self._said:
            said = (one for over_run in check for one in over_run(self.run))
            self._said[rule] = [one for one in said if isinstance(one, Suspicion)]
        return self._said[rule]


class Scripts:
    """The scripts of a project; one file may have another text than on disk."""

    def __init__(self, project: Project, path: str = "", given: bytes = b"") -> None:
        self._project = project
        self._path, self._given = path, given
        self._ran = _Last[_Ran](project, MOST_EVENTS)
        self._calls = _Last[frozenset[Key]](project, 1 << 20)
        self._told = _Last[Told](project, MOST_RUNS)

    def around(self, path: str) -> list[Told]:
        """What the scripts that use a file tell, and what it tells itself, which comes last."""
        return [self._told_by(one) for one in (*self._users(path), path)]

    def _users(self, path: str) -> list[str]:
        return sorted(self._project.around.users(path) or ())

    def _told_by(self, path: str) -> Told:
        return self._told.get(path, lambda: self._tell(path))

    def _tell(self, path: str) -> Told:
        called = frozenset[Key]().union(
            *(self._calls.get(user, partial(self._called_by, user)) for user in self._users(path))
        )
        return Told(run_of(self._run(path).without(called)))

    def _called_by(self, path: str) -> frozenset[Key]:
        return self._run(path).calls

    def _run(self, path: str) -> _Ran:
        return self._ran.get(path, lambda: self._make(path))

    def _make(self, path: str) -> _Ran:
        files: set[str] = set()

        def reads(other: str) -> bytes:
            if other not in files and other != path:
                files.add(other)
            if len(files) > MOST_FILES:
                return b""
            return self._text(other)

        text = self._text(path)
        most = min(MOST_STEPS, LEAST_STEPS + int(STEPS_OF_A_BYTE * len(text)))
        return _Ran(ran(Program(self._project.layout, reads), path, most))

    def _text(self, path: str) -> bytes:
        if path == self._path:
            return self._given
        self._project.layout.trail.add(WholeText(path))
        return code_of(self._project.around.whole(path))


class _Last(Generic[T]):
    """The last answers about scripts, each with what it was taken from."""

    def __init__(self, project: Project, most: int) -> None:
        self._trail = project.layout.trail
        self._most = most
        self._known: dict[str, tuple[Answer, T]] = {}

    def get(self, path: str, answer: Callable[[], T]) -> T:
        """The answer about a script, found once."""
        if path not in self._known:
            sources = Answer()
            with self._trail.into(sources.sources):
                found = answer()
            self._known[path] = sources, found
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        sources, found = self._known[path]
        self._trail.also(sources)
        return found


_kept: WeakKeyDictionary[Project, Scripts] = WeakKeyDictionary()


def scripts_around(project: Project, path: str, text: str) -> list[Told]:
    """What the scripts tell that a file with this text is part of."""
    with project.imports.followed(path):
        return _scripts(project, path, text).around(path)


def _scripts(project: Project, path: str, text: str) -> Scripts:
    on_disk = code_of(project.around.whole(path))
    try:
        is_on_disk = bool(on_disk) and decode(on_disk) == text
    except Unreadable:
        is_on_disk = False
    if not is_on_disk:
        given = _DECLARATION.sub(r"\1Coding", text).encode("utf-8", "surrogatepass")
        return Scripts(project, path, given)
    if project not in _kept:
        _kept[project] = Scripts(project)
    return _kept[project]


def _key(function: Function) -> Key:
    node = function.node
    return Key(function.frame.file, node.lineno, node.col_offset)
