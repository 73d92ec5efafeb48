"""Where data comes from that nobody knows: the file it was read from, or the pieces that a text is put together from."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ta_lint.dryrun.values import Hidden, Known, Place, Setting, Unknown, Value

LOOKS_UP = frozenset({"get", "pop", "setdefault"})
"""Methods of a dictionary that give what it has under a key."""

SEVERAL: Final = Hidden("several sources")


def alone(sources: Iterable[Any]) -> Any:
    """The one source of something that is computed from what has these, `SEVERAL` if they differ; None if there is none."""
    found = {id(one): one for one in sources if one is not None}
    return None if not found else SEVERAL if len(found) > 1 else found.popitem()[1]


class LoadedFile:
    """A file that the program reads, with what it asks of its content, on any path."""

    __slots__ = ("asked", "is_passed_on", "looked_for", "name", "place")

    def __init__(self, name: Value, place: Place) -> None:
        self.name = name
        self.place = place
        self.asked: set[str] = set()
        """The keys that are read, or looked for."""
        self.looked_for: set[object] = set()
        """The keys that may be missing."""
        self.is_passed_on = False
        """Whether other code gets all of it, or any key may be read."""


@dataclass(frozen=True, slots=True)
class FromFile:
    """All that a file holds, or what stands there under a key; `method` is the dictionary's that is about to be called."""

    file: LoadedFile
    key: str | None = None
    place: Place | None = None
    method: str = ""

    def part(self, key: Any, place: Place | None = None) -> "FromFile":
        """An attribute, by its name, or an item, by its key in a tuple; None if the key is not known."""
        if isinstance(key, str):
            return FromFile(self.file, self.key, self.place, key)
        if key is None or not isinstance(key[0], str):
            self.file.is_passed_on = self.file.is_passed_on or (key is None and self.key is None)
            return self
        self.file.asked.add(key[0])
        return FromFile(self.file, key[0], place)

    def result(self, args: list[Value], place: Place) -> "FromFile":
        """What a call of the method gives."""
        known = args[0].value if args and isinstance(args[0], Known) else None
        if self.method in LOOKS_UP and isinstance(known, str):
            return self.part((known,), place)
        self.file.is_passed_on = self.file.is_passed_on or self.key is None
        return FromFile(self.file, self.key, self.place)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text that is put together from these pieces, in order."""

    pieces: tuple[Value, ...]


OF_RANK: Final = Hidden("each process of a distributed run has another")


def of_rank(value: Any) -> Hidden | None:
    """That a number differs by rank."""
    return OF_RANK if getattr(value, "source", None) is OF_RANK else None


def read_of(value: Any) -> FromFile | None:
    """The file that a value was read from, or computed from."""
    source = getattr(value, "source", None)
    return source if isinstance(source, FromFile) else None


def passed_on(values: "list[Value]") -> None:
    """Code out of sight gets these: what a file holds as a whole may be used for anything."""
    for value in values:
        if (read := read_of(value)) is not None and read.key is None:
            read.file.is_passed_on = True


def text(*pieces: Value, type: str = "str") -> Value:
    """The text that these pieces make."""
    if all(map(is_fixed, pieces)):
        return Known("".join(str(one.value) for one in pieces))  # type: ignore[attr-defined]
    return Unknown("a text", type, source=Pieces(pieces))


def is_fixed(value: Value) -> bool:
    """Whether it is a constant, and none that stands for what others pass."""
    return isinstance(value, Known) and not (isinstance(value, Setting) and value.is_open)


_FIELD = {"%": re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]"), "{": re.compile(r"\{[^{}]*\}")}


def filled(form: str, mark: str, values: "list[Value]") -> Value:
    """A text with fields for these values, as `%` and `format` fill them, in order."""
    pieces: list[Value] = []
    given = iter(values)
    end = 0
    for field in _FIELD[mark].finditer(form):
        value = next(given, None)
        pieces += [Known(form[end : field.start()]), Unknown("a part of a text") if value is None else value]
        end = field.end()
    is_formatted = any(isinstance(one, Known) and not isinstance(one.value, str) for one in pieces)
    made = [*pieces, Known(form[end:])]
    return Unknown("a text", "str", source=Pieces(tuple(made))) if is_formatted else text(*made)


def pieces_of(value: Value) -> Iterator[str | Value]:
    """The pieces of the name of a file: characters that are known, one by one, and values that are not."""
    source = getattr(value, "source", None)
    if isinstance(source, Pieces):
        for one in source.pieces:
            yield from pieces_of(one)
    elif is_fixed(value):
        yield from str(value.value)  # type: ignore[attr-defined]
    else:
        yield value
