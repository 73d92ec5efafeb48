"""What a call gave before: a function that gets the same again, reads what has not changed and does nothing else gives the same again.

While a function runs, it is noted what it reads outside of itself. A function that does what a training does (`events`), writes outside of
itself, or reads an object whose parts are not noted, is run each time.
"""

import ast
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from ta_lint.dryrun.machine.frame import Frame, moments
from ta_lint.dryrun.sources import Pieces
from ta_lint.dryrun.state import ABSENT
from ta_lint.dryrun.values import (
    Bound,
    Choice,
    Class,
    External,
    Function,
    Items,
    Known,
    Mergeable,
    Module,
    Native,
    Object,
    OnDemand,
    Option,
    Sequence,
    Setting,
    Table,
    Unknown,
    Value,
)

MOST_PARTS = 100
"""Values in the arguments, in the result, or in a list that is read. A call with more of them is run each time."""
MOST_FAILURES = 8
"""Times that a function may turn out to be none that is remembered, before nobody tries again."""
MOST_RESULTS = 200
"""Results of a function that are kept."""
ALWAYS: Final = -1
"""When a module began, for what a function reads in one."""
_NAMED = frozenset(
    {
        "__doc__",
        "__name__",
        "__qualname__",
        "__module__",
        "__wrapped__",
        "__signature__",
        "__init__",
        "__new__",
        "__call__",
    }
)
"""Special attributes of which it is noted where they are asked for, or which change nothing."""


class Unfit(Exception):
    """A value is not one by which a call can be known again."""


@dataclass(slots=True)
class Read:
    """What a function has read outside of itself: the value under a key, or with `key` WHOLE all of a store."""

    store: dict[Any, Any]
    key: Any
    value: Any
    born: int
    """When what holds it began."""

    def holds(self) -> bool:
        """Whether that is still so."""
        if self.key is WHOLE:
            return bool(self.store == self.value)
        return self.store.get(self.key, ABSENT) is self.value


WHOLE: Final = object()
"""The key of a read of all that a store has."""


@dataclass(slots=True)
class Arguments:
    """The arguments of a call: what makes them the same as others, and the objects in them by number."""

    objects: list[Any] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    key: Any = None

    def part(self, value: Any) -> Any:
        """What makes a value the same as another: what it holds, and which of its objects are one.

        Raises:
            Unfit: it has an identity and parts that may change.
        """
        cls = value.__class__
        if (
            cls is Known
            or cls is External
            or cls is Native
            or value is None
            or isinstance(value, (Class, Function, Module))
        ):
            return value
        if cls is Setting or cls is Option:
            return cls, value.value
        if cls is Bound:
            return Bound, self.part(value.receiver), self.part(value.function)
        if cls is Choice:
            return Choice, *map(self.part, value.options)
        number = self.numbers.get(id(value))
        if number is not None:
            return number
        if len(self.objects) >= MOST_PARTS:
            raise Unfit
        self.numbers[id(value)] = len(self.objects)
        self.objects.append(value)
        if cls is Unknown:
            return Unknown, value.why, value.type, self.part(value.of), value.cuts, value.amount, value.source
        if cls is Sequence:
            return value.cls, *map(self.part, value.items), REST_OF, self.part(value.rest)
        if cls is Table:
            return value.cls, *((key, self.part(one)) for key, one in value.fields.items())
        alike = value.alike() if isinstance(value, Object) else None
        if alike is None:
            raise Unfit
        return value.cls, alike


REST_OF: Final = object()


@dataclass(slots=True)
class Notes:
    """A function that runs and may be remembered."""

    function: Function
    arguments: Arguments
    born: int
    events: int
    catches: int
    assumed: int
    modes: dict[str, Any]
    before: list[tuple[dict[Any, Any], dict[Any, Any]]]
    """What the objects of the arguments hold at the beginning."""
    spoiled: bool = False
    reads: dict[tuple[int, Any], Read] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """The attributes that it asks for."""
    asked: set[str] = field(default_factory=set)
    """The conditions that nobody could decide."""
    thrown: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """What a call gave, and on what that rests."""

    value: Value
    thrown: tuple[Value, ...]
    """The exceptions that left it on some path."""
    recording: Notes


class Memo:
    """The calls of one machine that are remembered, and the functions that run now."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self._results: dict[ast.AST, dict[Any, Result]] = {}
        self._failures: dict[ast.AST, int] = {}
        self._patched: dict[str, int] = {}
        """The attributes of classes and modules that the program has changed, and when."""
        self._pending: set[str] = set()
        """Those of which it may still be taken back."""
        self._off = False
        self.recordings: list[Notes] = []

    # -- remembering -----------------------------------------------------------------------------------

    def arguments(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], *, loose: bool
    ) -> Arguments | None:
        """What a call is known again by, None if it is none that is remembered."""
        machine = self._machine
        if machine.outline or self._off or self._failures.get(function.node, 0) >= MOST_FAILURES:
            return None
        found = Arguments()
        passes = machine.passes
        try:
            found.key = (
                function,
                *map(found.part, args),
                *((name, found.part(value)) for name, value in kwargs.items()),
                loose,
                *machine.modes.values(),
                any(one.settled for one in passes),
                bool(passes) and passes[-1].settled,
                machine.checking,
            )
            hash(found.key)
        except (Unfit, TypeError, RecursionError):
            return None
        return found

    def recall(self, function: Function, arguments: Arguments) -> Value | None:
        """What the same call gave before, None if there was none or what it rests on has changed."""
        result = self._results.get(function.node, {}).get(arguments.key)
        if result is None:
            return None
        past = result.recording
        if not all(one.holds() for one in past.reads.values()) or any(
            name in self._pending or self._patched[name] > past.born
            for name in past.names & self._patched.keys()
        ):
            return None
        if past.asked and not past.asked.isdisjoint(key[0] for key in self._machine.assumed):
            return None
        again = _Again(self._machine, past, arguments)
        for one in result.thrown:
            self._machine.arrive(again.of(one))
        self._add(past)
        value: Value = again.of(result.value)
        return value

    def begin(self, function: Function, arguments: Arguments, frame: Frame) -> Notes:
        """A function runs in a frame; what it reads is noted until `end`."""
        machine = self._machine
        recording = Notes(
            function, arguments, frame.born, len(machine.events), len(machine.catches), len(machine.assumed),
            dict(machine.modes), [(one.fields, dict(one.fields)) for one in arguments.objects if isinstance(one, Object)],
        )  # fmt: skip
        self.recordings.append(recording)
        return recording

    def end(self, recording: Notes, value: Value | None) -> None:
        """It has ended with this value, or with an exception."""
        machine = self._machine
        while self.recordings.pop() is not recording:
            pass
        node = recording.function.node
        kept = self._results.setdefault(node, {})
        if (
            value is not None
            and not recording.spoiled
            and len(kept) < MOST_RESULTS
            and len(machine.events) == recording.events
            and machine.modes == recording.modes
            and len(machine.assumed) == recording.assumed
            and all(one.holds() for one in recording.reads.values())
            and all(fields == copy for fields, copy in recording.before)
        ):
            again = _Again(machine, recording, recording.arguments)  # the caller may change what it gets
            with suppress(Unfit, RecursionError):
                kept[recording.arguments.key] = Result(
                    again.of(value), tuple(map(again.of, recording.thrown)), recording
                )
        if not kept:
            self._failures[node] = self._failures.get(node, 0) + 1
        self._add(recording)

    def _add(self, inner: Notes) -> None:
        """What a function rests on, its caller rests on too."""
        if inner.spoiled or not self.recordings or (outer := self.recordings[-1]).spoiled:
            return
        outer.reads.update(
            (at, one) for at, one in inner.reads.items() if one.born < outer.born and at not in outer.reads
        )
        outer.names |= inner.names
        outer.asked |= inner.asked

    # -- noting ----------------------------------------------------------------------------------------

    def spoil(self) -> None:
        """What happens now is none of what the memo knows to repeat."""
        for one in reversed(self.recordings):
            if one.spoiled:
                break
            one.spoiled = True

    def read(self, store: dict[Any, Any], key: Any, value: Any, born: int = ALWAYS) -> None:
        """A function reads what is not its own."""
        if not self.recordings:
            return
        top = self.recordings[-1]
        at = id(store), key
        if not top.spoiled and at not in top.reads and born < top.born:
            top.reads[at] = Read(store, key, value, born)
            self._parts(top, value, born)

    def outside(self, value: Value) -> None:
        """A function gets a value of a library, or of a module."""
        if self.recordings:
            self._parts(self.recordings[-1], value, ALWAYS)

    def _parts(self, top: Notes, value: Any, born: int) -> None:
        """What is outside of a function, and may be read by it once it has this value."""
        if isinstance(value, (Sequence, Table)) and type(value) in (Sequence, Table):
            at = id(value.fields), WHOLE
            if at in top.reads:
                return
            every = value.every if isinstance(value, Sequence) else tuple(value.fields.values())
            if len(every) > MOST_PARTS:
                self.spoil()
                return
            top.reads[at] = Read(value.fields, WHOLE, dict(value.fields), born)
            for one in every:
                self._parts(top, one, born)
        elif isinstance(value, Choice):
            for one in value.options:
                self._parts(top, one, born)
        elif isinstance(value, Bound):
            self._parts(top, value.receiver, born)
            self._parts(top, value.function, born)
        elif isinstance(value, OnDemand) or (
            isinstance(value, Object) and not isinstance(value, (Class, Function, Module))
        ):
            self.spoil()

    def named(self, name: str) -> None:
        """A function asks for an attribute, of whatever."""
        if self.recordings:
            self.recordings[-1].names.add(name)

    def patched(self, name: str) -> None:
        """The program changes an attribute of a class, a module or a function."""
        self.spoil()
        self._patched[name] = next(moments)
        self._pending.add(name)
        self._off = self._off or (name[:2] == "__" == name[-2:] and name not in _NAMED)

    def settle(self) -> None:
        """What was changed before now is not taken back."""
        self._patched.update(dict.fromkeys(self._pending, next(moments)))
        self._pending.clear()

    def asked(self, condition: str) -> None:
        """Nobody knows whether a condition holds."""
        self.recordings[-1].asked.add(condition)

    def consulted(self, condition: Any) -> None:
        """A condition holds because it held before on this path."""
        position = list(self._machine.assumed).index(condition)
        for one in self.recordings:
            one.spoiled = one.spoiled or position < one.assumed

    def threw(self, value: Value) -> None:
        """An exception leaves the functions that have begun since the innermost `try`."""
        catches = len(self._machine.catches)
        for one in self.recordings:
            if one.catches >= catches:
                one.thrown.append(value)


class _Again:
    """A value that a call gave, for another call of the same."""

    def __init__(self, machine: Any, past: Notes, arguments: Arguments) -> None:
        self._machine, self._since, self._parts = machine, past.born, dict[Any, Any]()
        pairs = list(zip(past.arguments.objects, arguments.objects, strict=True))
        self._done: dict[int, Any] = {id(old): new for old, new in pairs}
        """What stands for each object, those of the arguments to begin with."""
        self._made = {id(old.made): new.made for old, new in pairs if isinstance(old, Object)}
        self._outside: set[int] = set()
        for one in past.reads.values():
            self._outside |= {id(one.store), id(one.value)}
            for part in one.value.values() if one.key is WHOLE else ():
                self._outside |= {
                    id(part),
                    *map(id, getattr(part, "known", ())),
                    id(getattr(part, "rest", None)),
                }

    def of(self, value: Any) -> Any:
        """The value, with the objects of the arguments in it, and new ones for those that the call has made.

        Raises:
            Unfit: nobody knows how it was made.
        """
        at = id(value)
        if at in self._done:
            return self._done[at]
        if self._stays(value):
            return value
        if isinstance(value, Mergeable) and not isinstance(value, Items):
            return value.renewed(self._machine, self._since, self._parts)
        if len(self._done) > 2 * MOST_PARTS:
            raise Unfit
        if isinstance(value, Unknown):
            of = None if value.of is None else self.of(value.of)
            source, amount = value.source, value.amount and value.amount.of_another(self._machine)
            if isinstance(source, Pieces):
                source = Pieces(tuple(map(self.of, source.pieces)))
            made: Any = Unknown(value.why, value.type, of, value.cuts, amount=amount, source=source)
        elif isinstance(value, Bound):
            made = Bound(self.of(value.receiver), self.of(value.function))
        elif isinstance(value, Choice):
            made = Choice(tuple(map(self.of, value.options)))
        elif isinstance(value, Items):
            return Items(tuple(map(self.of, value.known)), self.of(value.rest))
        elif isinstance(value, Object) and _is_made_by_code(value):
            made = self._done[at] = object.__new__(value.__class__)
            made.cls, made.made, made.fields = value.cls, self._made.get(id(value.made), value.made), {}
            made.fields.update((key, self.of(one)) for key, one in value.fields.items())
        else:
            raise Unfit
        self._done[at] = made
        return made

    def _stays(self, value: Any) -> bool:
        """Whether a value is the same for all calls."""
        if value is None or isinstance(value, (Known, External, Native, Module)):
            return True
        if isinstance(value, Object) and id(value.fields) in self._outside:
            return True
        library = isinstance(value, Class) and value.made is None
        return library or id(value) in self._outside


def _is_made_by_code(value: Object) -> bool:
    """Whether an object that no argument and nothing outside is was made by the code that gave it, and can be made again."""
    if type(value) in (Sequence, Table) or value.alike() is not None:
        return True
    of_the_program = value.cls.node is not None or any(one.name == "BaseException" for one in value.cls.mro)
    return type(value) is Object and of_the_program
