"""The gate: the words that a file must contain before a check looks at it.

A check's `KEYWORDS` must all occur in the file; of a tuple among them, at least one:

- `zero_grad` is a whole name, in code, in a string or in a comment.
- `clip*`, `*loss` and `*seed*` match the start, the end or a part of a name, in lower or upper case.
- `clamp();` is a call that is a statement of its own, such as `x.clamp(0, 1)`, or its last call is: nothing takes what it gives.
- Any other word with a character that no name contains, such as `**`, is matched as plain text.

A model, its loss and the loop around them may be in three files: the entries of a check's `AROUND` must occur in the file or
in one that it imports, or that imports it.

A gate may admit a file without findings, but must admit every file with one.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ta_lint.core.digest import digest_of

Entry = str | tuple[str, ...]
Keywords = tuple[Entry, ...]

_CALLS = {"*backward": "backward(", "step": ".step("}

# Keeps the bytes that occur in names, and maps all others to a space.
_SPACED = bytes(
    code if code < 128 and (chr(code).isalnum() or chr(code) == "_") else ord(" ") for code in range(256)
)


_CALLED = "();"
_BEFORE = 200
"""Bytes before a line that are looked through for the end of the code before it."""
_STATEMENT = re.compile(
    rb"(?m)^[ \t]*(?:(?:if|elif|else|for|while|with|try)\b[^\n]*:[ \t]*)?"
    rb"(?:[A-Za-z_][\w.\[\]\"']*(?:\([^\n()]*\)[\w.\[\]]*)*\.)?(\w+)\("
)
"""A line that begins with calls, up to the last of them."""
_GOES_ON = b",([{=+-*/|&\\"
"""What ends a line whose statement goes on in the next one."""


class Text:
    """The bytes of a file, with a cache of the words looked up in them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._answers: dict[str, bool] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in the file, including its numbers and the words in strings and comments."""
        return frozenset(self._data.translate(_SPACED).decode("ascii").split())

    @cached_property
    def _lower(self) -> str:
        """Each name once, in lower case, between spaces: a sixth of the file."""
        return f" {' '.join(self.names)} ".lower()

    @cached_property
    def _statements(self) -> frozenset[str]:
        """The functions and methods that statements call and nothing else."""
        data, found = self._data, set()
        for call in _STATEMENT.finditer(data):
            before = data[max(0, call.start() - _BEFORE) : call.start()].rstrip()
            if not before or before[-1] not in _GOES_ON:
                found.add(call[1].decode())
        return frozenset(found)

    def has(self, word: str) -> bool:
        """Whether the file contains a word other than a whole name: a part of a name, or plain text."""
        answer = self._answers.get(word)
        if answer is None:
            answer = self._answers[word] = self._found(word)
        return answer

    def _found(self, word: str) -> bool:
        if word.endswith(_CALLED):
            return word.removesuffix(_CALLED) in self._statements
        part = _part(word)
        return part in self._lower if part else word.encode() in self._data


@dataclass(frozen=True)
class _Choice:
    """Alternatives: a file must contain one of these whole names or other words."""

    names: frozenset[str]
    others: tuple[str, ...]

    def is_met(self, text: Text) -> bool:
        return not self.names.isdisjoint(text.names) or any(map(text.has, self.others))


def nothing() -> frozenset[Entry]:
    return frozenset()


class Gate:
    """The keywords of a check, prepared for matching many files."""

    def __init__(self, keywords: Keywords, around: Keywords = ()) -> None:
        self._names = frozenset(word for word in keywords if isinstance(word, str) and _is_name(word))
        self._choices = [_choice(entry) for entry in keywords if entry not in self._names]
        self.around = {entry: _choice(entry) for entry in around}

    def admits(self, text: Text, around: Callable[[], frozenset[Entry]] = nothing) -> bool:
        """Whether a file may contain what the check looks for, given which entries the files around it meet."""
        return (
            self._names <= text.names
            and all(choice.is_met(text) for choice in self._choices)
            and all(choice.is_met(text) or entry in around() for entry, choice in self.around.items())
        )


class WordsAround:
    """The entries of the `AROUND` of several checks, to be looked for in many files."""

    def __init__(self, gates: Iterable[Gate]) -> None:
        entries = {entry for gate in gates for entry in gate.around}
        self._choices = [(entry, _choice(_called(entry))) for entry in entries]
        self.key = digest_of(repr(sorted(map(repr, entries))).encode())
        """What tells them from other words."""

    def __call__(self, data: bytes) -> frozenset[Entry]:
        """The entries that a file with these bytes meets."""
        text = Text(data)
        return frozenset(entry for entry, choice in self._choices if choice.is_met(text))


def _called(entry: Entry) -> tuple[str, ...]:
    """How words are searched in other files: `backward` and `step` as calls, because prose mentions them too."""
    return tuple(_CALLS.get(word, word) for word in ((entry,) if isinstance(entry, str) else entry))


def _choice(entry: Entry) -> _Choice:
    words = (entry,) if isinstance(entry, str) else entry
    return _Choice(frozenset(filter(_is_name, words)), tuple(word for word in words if not _is_name(word)))


def _is_name(word: str) -> bool:
    return word.isascii() and word.replace("_", "a").isalnum()


def _part(word: str) -> str:
    """`*loss` as it occurs among names between spaces, `loss `; empty for plain text."""
    inner = word.strip("*")
    if not _is_name(inner):
        return ""
    return f"{'' if word[0] == '*' else ' '}{inner.lower()}{'' if word[-1] == '*' else ' '}"
