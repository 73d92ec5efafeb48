"""The scripts of a project, each run dry once, whatever file is linted: what happens in a file is what the scripts that use it do there."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, TypeVar

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import ran
from ta_lint.dryrun.machine.machine import MOST_STEPS, Machine
from ta_lint.dryrun.machine.reach import actions_in
from ta_lint.dryrun.program import Program, code_of
from ta_lint.dryrun.values import Function
from ta_lint.events.event import Event
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion
from ta_lint.project.project import Project
from ta_lint.project.trail import Answer, WholeText

T = TypeVar("T")
Check = tuple[Callable[[Run], Iterator[Said]], ...]
Told = Mapping[str, list[Suspicion] | Exception]
"""What the check of each rule says of the run of a script, wherever that is, or what it has raised."""


class Checks(Protocol):
    """The checks over runs that are enabled."""

    def __hash__(self) -> int: ...

    @property
    def over_runs(self) -> Mapping[str, Check]:
        """Each by its rule."""
        ...

    def looking(self, project: Project, path: str, data: bytes, /) -> frozenset[str]:
        """The rules of those that look at a script with this text."""
        ...


LEAST_STEPS = 1_000
STEPS_OF_A_BYTE = 0.5
"""What an entry of a script may take: the work grows with its text, whatever loops it has."""
_DECLARATION = re.compile(r"\A((?:[^\n]*\n)?[ \t\f]*#[^\n]*?)coding(?=[:=])")
"""That of an encoding, which the text no longer has here."""
MOST_FILES = 12
MOST_SMALL_FILES = 64
MOST_BYTES = 100_000
"""Files that a script may import: more than a dozen if they are small, and hold so much in all. What else it imports is not known."""
MOST_USERS = 24
MOST_STEPS_OF_USERS = 60_000
"""Scripts that are asked about a file that they use: no more once they have taken so many steps."""


class _Key(NamedTuple):
    """Where a function stands."""

    file: str
    line: int
    column: int


class _Ran:
    """A script that has run."""

    def __init__(self, machine: Machine, path: str) -> None:
        self.events = machine.events
        self.steps = machine.steps
        self.guesses = [
            (frozenset(map(_key, functions)), begin, end) for functions, begin, end in machine.guesses
        ]
        own = machine.events[: machine.trained]
        certain = {one for event in own if event.certain for one in event.functions}
        entered = {one for functions, _, _ in machine.guesses for one in functions}
        broken = {one for event in machine.events if event.action == "broken off" for one in event.functions}
        calls = map(_key, (certain | machine.unrecorded | entered) - broken)
        self.calls = frozenset(one for one in calls if one.file != path)
        """The functions of other files that need no guess of who might call them: it certainly calls them, or calls them without
        recording, or has an object whose methods they are, and they come to their end.
        """

    def without(self, called: frozenset[_Key]) -> list[Event]:
        """What happens, but for what is guessed of functions that others call."""
        dropped = [(begin, end) for functions, begin, end in self.guesses if functions <= called]
        if not dropped:
            return self.events
        left, start = list[Event](), 0
        for begin, end in sorted(dropped):
            left += self.events[start:begin]
            start = max(start, end)
        return left + self.events[start:]


class _Brief(NamedTuple):
    """What is kept of each script that has run: as in `_Ran`."""

    calls: frozenset[_Key]
    steps: int


class DryRuns:
    """The scripts of a project, and what checks say of each; one file may have another text than on disk."""

    def __init__(self, project: Project, checks: Checks, path: str = "", given: bytes = b"") -> None:
        self._project, self._checks = project, checks
        self._path, self._given = path, given
        self._trail = project.layout.trail
        self._ran: dict[str, tuple[Answer, _Brief]] = {}
        self._told: dict[str, tuple[Answer, Told]] = {}
        self._looking: dict[str, tuple[Answer, frozenset[str]]] = {}

    def around(self, path: str, looking: frozenset[str]) -> list[Told]:
        """What is said of a script, at which the checks of these rules look, and of those that use it, directly or not."""
        told = [self._said_of(path, looking)] if looking else []
        for script in self._users(path):
            rules = looking | self._looking_at(script)
            if rules:
                told.append(self._said_of(script, rules))
        return told

    def _said_of(self, path: str, rules: frozenset[str]) -> Told:
        if path not in self._told:
            self._run(path)
        said = self._from(self._told[path])
        return {rule: said[rule] for rule in rules & said.keys()}

    def _run(self, path: str) -> None:
        """Run a script, and those that use it: what it calls is known to them meanwhile. What happened is not kept."""
        sources, ran = self._answered(partial(self._make, path))
        self._ran[path] = sources, _Brief(ran.calls, ran.steps)
        self._told[path] = self._answered(partial(self._tell, path, ran))

    def _tell(self, path: str, ran: "_Ran") -> Told:
        called = frozenset[_Key]().union(*(self._brief(user).calls for user in self._users(path)))
        run = run_of(ran.without(called))
        told = ((rule, _said(check, run)) for rule, check in self._checks.over_runs.items())
        return {rule: said for rule, said in told if said}

    def _brief(self, path: str) -> _Brief:
        if path not in self._ran:
            self._run(path)
        return self._from(self._ran[path])

    def _answered(self, answer: Callable[[], T]) -> tuple[Answer, T]:
        """An answer, with what it is taken from."""
        sources = Answer()
        with self._trail.into(sources.sources):
            return sources, answer()

    def _from(self, known: tuple[Answer, T]) -> T:
        """An answer that the current one is taken from."""
        self._trail.also(known[0])
        return known[1]

    def _users(self, path: str) -> list[str]:
        """The scripts that use another one, first those that do so directly, and of these first those that train; not all, if they run long."""
        found, pending, steps = dict.fromkeys([path]), [path], 0
        while pending:
            using = {user for one in pending for user in self._project.around.scripts(one)}
            pending = sorted(using - found.keys(), key=self._in_turn)
            for user in pending:
                if steps >= MOST_STEPS_OF_USERS or len(found) > MOST_USERS:
                    return [*found][1:]
                found[user] = None
                steps += self._brief(user).steps
        return [*found][1:]

    def _in_turn(self, path: str) -> tuple[int, str]:
        return -actions_in(self._text(path).decode("utf-8", "replace")), path

    def _looking_at(self, path: str) -> frozenset[str]:
        if path not in self._looking:
            self._looking[path] = self._answered(partial(self._look, path))
        return self._from(self._looking[path])

    def _look(self, path: str) -> frozenset[str]:
        return self._checks.looking(self._project, path, self._text(path))

    def _make(self, path: str) -> _Ran:
        read: dict[str, int] = {path: 0}

        def reads(other: str) -> bytes:
            most = MOST_FILES if sum(read.values()) > MOST_BYTES else MOST_SMALL_FILES
            if other not in read and len(read) > most:
                return b""
            text = self._text(other)
            read.setdefault(other, len(text))
            return text

        text = self._text(path)
        most = min(MOST_STEPS, LEAST_STEPS + int(STEPS_OF_A_BYTE * len(text)))
        return _Ran(ran(Program(self._project.layout, reads), path, most), path)

    def _text(self, path: str) -> bytes:
        if path == self._path:
            return self._given
        self._project.layout.trail.add(WholeText(path))
        return code_of(self._project.around.whole(path))


def told_around(
    project: Project, path: str, text: str, checks: Checks, looking: frozenset[str]
) -> list[Told]:
    """What checks say of the scripts that a file with this text is part of; those of the rules that are `looking` look at it."""
    with project.imports.followed(path):
        return _scripts(project, path, text, checks).around(path, looking)


def _scripts(project: Project, path: str, text: str, checks: Checks) -> DryRuns:
    on_disk = code_of(project.around.whole(path))
    if path in project.around.changing or not on_disk or on_disk != text.encode("utf-8", "surrogatepass"):
        given = _DECLARATION.sub(r"\1Coding", text).encode("utf-8", "surrogatepass")
        return DryRuns(project, checks, path, given)
    return _kept(project, checks, project.layout.trail.clearings)


@lru_cache(2)
def _kept(project: Project, checks: Checks, clearings: int) -> DryRuns:
    """The scripts of a project, until its import statements have changed."""
    return DryRuns(project, checks)


def _said(check: Check, run: Run) -> list[Suspicion] | Exception:
    try:
        return [one for over_run in check for one in over_run(run) if isinstance(one, Suspicion)]
    except Exception as error:  # noqa: BLE001 - a check never stops another
        return error


def _key(function: Function) -> _Key:
    node = function.node
    return _Key(function.frame.file, node.lineno, node.col_offset)
