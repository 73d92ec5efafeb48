"""The scripts of a project, each run dry once, whatever file is linted: what happens in a file is what the scripts that use it do there."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

from ta_lint.checks import Check, Enabled
from ta_lint.core.letters import searchable
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run_of
from ta_lint.dryrun.machine.machine import MOST_STEPS, Machine
from ta_lint.dryrun.machine.reach import actions_in
from ta_lint.dryrun.program import Program, code_of
from ta_lint.dryrun.values import Function
from ta_lint.events.event import Event
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Suspicion
from ta_lint.project.project import Project
from ta_lint.project.trail import Answer, WholeText

T = TypeVar("T")
Told = Mapping[str, list[Suspicion] | Exception]
"""What the check of each rule says of the run of a script, wherever that is, or what it has raised."""

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

    def __init__(self, project: Project, enabled: Enabled, path: str = "", given: bytes = b"") -> None:
        self._project, self._enabled = project, enabled
        self._path, self._given = path, given
        self._trail = project.layout.trail
        self._ran: dict[str, tuple[Answer, _Brief]] = {}
        self._told: dict[str, tuple[Answer, Told]] = {}
        self._looking: dict[str, tuple[Answer, frozenset[str]]] = {}

    def around(self, path: str, looking: frozenset[str]) -> list[Told]:
        """What is said of a script, at which the checks of these rules look, and of those that use it, directly or not."""
        told = [self._said_of(path, looking)] if looking else []
        for script in self._users(path, lambda user: looking or self._looking_at(user)):
            told.append(self._said_of(script, looking | self._looking_at(script)))
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
        told = ((check.rule, _said(check, run)) for check in self._enabled.checks)
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

    def _users(self, path: str, counts: Callable[[str], object] = bool) -> list[str]:
        """The scripts that use another one and that count: first those that do so directly, and of these first those that train. Not all, if
        they run long.
        """
        found, pending, steps = dict.fromkeys([path], False), [path], 0
        while pending:
            using = {user for one in pending for user in self._project.around.scripts(one)}
            pending = sorted(using - found.keys(), key=self._in_turn)
            for user in pending:
                if steps >= MOST_STEPS_OF_USERS or len(found) > MOST_USERS:
                    return [one for one in found if found[one]]
                found[user] = bool(counts(user))
                steps += self._brief(user).steps if found[user] else 0
        return [one for one in found if found[one]]

    def _in_turn(self, path: str) -> tuple[int, str]:
        return -actions_in(self._text(path).decode("utf-8", "replace")), path

    def _looking_at(self, path: str) -> frozenset[str]:
        if path not in self._looking:
            self._looking[path] = self._answered(partial(self._look, path))
        return self._from(self._looking[path])

    def _look(self, path: str) -> frozenset[str]:
        looking = self._enabled.looking(self._project, path, searchable(self._text(path)))
        return frozenset(check.rule for check in looking if check.over_runs)

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
        return _Ran(dry_run_of(Program(self._project.layout, reads), path, most), path)

    def _text(self, path: str) -> bytes:
        if path == self._path:
            return self._given
        self._project.layout.trail.add(WholeText(path))
        return code_of(self._project.around.whole(path))


def told_around(
    project: Project, path: str, text: str, enabled: Enabled, looking: frozenset[str]
) -> list[Told]:
    """What checks say of the scripts that a file with this text is part of; those of the rules that are `looking` look at it."""
    with project.imports.followed(path):
        return _scripts(project, path, text, enabled).around(path, looking)


def _scripts(project: Project, path: str, text: str, enabled: Enabled) -> DryRuns:
    on_disk = code_of(project.around.whole(path))
    if path in project.around.changing or not on_disk or on_disk != text.encode("utf-8", "surrogatepass"):
        given = _DECLARATION.sub(r"\1Coding", text).encode("utf-8", "surrogatepass")
        return DryRuns(project, enabled, path, given)
    return _kept(project, enabled, project.layout.trail.clearings)


@lru_cache(2)
def _kept(project: Project, enabled: Enabled, clearings: int) -> DryRuns:
    """The scripts of a project, until its import statements have changed."""
    return DryRuns(project, enabled)


def _said(check: Check, run: Run) -> list[Suspicion] | Exception:
    try:
        return [one for over_run in check.over_runs for one in over_run(run) if isinstance(one, Suspicion)]
    except Exception as error:  # noqa: BLE001 - a check never stops another
        return error


def _key(function: Function) -> _Key:
    node = function.node
    return _Key(function.frame.file, node.lineno, node.col_offset)
