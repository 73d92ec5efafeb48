"""Whether two names may be those of one file."""

import re
from collections.abc import Iterable
from itertools import takewhile

from ta_lint.dryrun.sources import Pieces, is_fixed, pieces_of, read_of
from ta_lint.dryrun.values import Unknown, Value

LETTERS = 3
"""So many letters that two names share are no coincidence; an extension does not count."""
LONGEST = 200
"""Characters of two names that are compared, and values in them."""


def may_be_one(one: Value, other: Value) -> bool:
    """Whether two names are the same, or may be, and have a part in common that says so: a value that nobody knows, or a word."""
    first, second = _plain(pieces_of(one)), _plain(pieces_of(other))
    start = _shared(first, second)
    end = _shared(first[start:][::-1], second[start:][::-1])
    left, right = first[start : len(first) - end], second[start : len(second) - end]
    if not left and not right:
        return True
    if len(left) + len(right) > LONGEST or not _may_fit(left, right):
        return False
    shared = [*first[:start], *first[len(first) - end :]]
    return any(not isinstance(piece, str) for piece in shared) or _letters(shared, start) >= LETTERS


def fixed_name(name: Value) -> str | None:
    """A name that is known; of two such names, only equal ones may be one."""
    return "".join(map(str, _plain(pieces_of(name)))) if is_fixed(name) else None


def _plain(pieces: Iterable[str | Value]) -> list[str | Value]:
    """The pieces of a path without what leads nowhere: `./` at its beginning, and a second slash."""
    found: list[str | Value] = []
    for piece in pieces:
        if piece == "/" and found[-1:] == ["/"]:
            continue
        found.append(piece)
        if found == [".", "/"]:
            found.clear()
    return found


def _shared(one: list[str | Value], other: list[str | Value]) -> int:
    """How many pieces are the same at the beginning."""
    pairs = takewhile(lambda pair: pair[0] is pair[1] or _is_equal(*pair), zip(one, other, strict=False))
    return len([*pairs])


def _is_equal(one: str | Value, other: str | Value) -> bool:
    return isinstance(one, str) and one == other


def _may_fit(one: list[str | Value], other: list[str | Value]) -> bool:
    """Whether two parts of names that begin and end with something else may be the same: a number is of digits, anything else is open."""
    for part, rest in ((one, other), (other, one)):
        if all(isinstance(piece, str) for piece in part):
            form = "".join(map(_form, rest))
            return re.fullmatch(form, "".join(map(str, part)), re.DOTALL) is not None
    ends = ((part[0], rest[0]) for part, rest in ((one, other), (one[::-1], other[::-1])) if part and rest)
    return not any(isinstance(first, str) and isinstance(second, str) for first, second in ends)


def _form(piece: str | Value) -> str:
    """What a piece of a name may be, as a regular expression."""
    if isinstance(piece, str):
        return re.escape(piece)
    return r"[-+.\de]*" if getattr(piece, "type", None) in ("int", "float") else ".*"


def _letters(shared: list[str | Value], start: int) -> int:
    """The letters of the file's own name that are shared, at its start and its end, without those of an extension."""
    before, after = ("".join(map(str, part)) for part in (shared[:start], shared[start:]))
    return sum(map(str.isalpha, before.rpartition("/")[2] + after.rpartition(".")[0]))


def origins(value: Value) -> set[object]:
    """What a value that nobody knows is made of, or was read from."""
    if is_fixed(value):
        return set()
    found: set[object] = {id(value)}
    if (read := read_of(value)) is not None:
        found.add(read.file)
    if isinstance(value, Unknown) and isinstance(value.source, Pieces):
        found = found.union(*map(origins, value.source.pieces))
    return found
