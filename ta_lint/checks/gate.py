"""The gate: the words that a file must contain before a check looks at it.

A check's `KEYWORDS` must all occur in the file; of a tuple among them, at least one:

- `zero_grad` is a whole name, in code, in a string or in a comment.
- `clip*`, `*loss` and `*seed*` match the start, the end or a part of a name, in lower or upper case.
- A word with a character that no name contains, such as `**`, is matched as plain text.

What a training loop calls may stand in another file than what it is called for, so `*backward`, `step` and the like may also
occur in a file that this one imports, or that imports it; at least one keyword must be in the file itself.

A gate may admit a file without findings, but must admit every file with one.
"""

from dataclasses import dataclass
from functools import cached_property

Keywords = tuple[str | tuple[str, ...], ...]

# An entry of `KEYWORDS` that is one of these, or holds the first, is about the loop around what is reported.
_OF_LOOPS = frozenset({"*backward", "step", "*scaler"})

# Keeps the bytes that occur in names, and maps all others to a space.
_SPACED = bytes(
    code if code < 128 and (chr(code).isalnum() or chr(code) == "_") else ord(" ") for code in range(256)
)


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

    def has(self, word: str) -> bool:
        """Whether the file contains a word other than a whole name: a part of a name, or plain text."""
        answer = self._answers.get(word)
        if answer is None:
            answer = self._answers[word] = self._found(word)
        return answer

    def _found(self, word: str) -> bool:
        part = _part(word)
        return part in self._lower if part else word.encode() in self._data


@dataclass(frozen=True)
class _Choice:
    """Alternatives: a file must contain one of these whole names or other words."""

    names: frozenset[str]
    others: tuple[str, ...]

    def is_met(self, text: Text) -> bool:
        return not self.names.isdisjoint(text.names) or any(map(text.has, self.others))


class Gate:
    """The keywords of a check, prepared for matching many files."""

    def __init__(self, keywords: Keywords) -> None:
        self._names = frozenset(word for word in keywords if isinstance(word, str) and _is_name(word))
        self._choices = [_choice(entry) for entry in keywords if entry not in self._names]
        self._of_loops = [_choice(entry) for entry in keywords if _is_of_loops(entry)]
        self._others = [_choice(entry) for entry in keywords if not _is_of_loops(entry)]

    def admits(self, text: Text) -> bool:
        """Whether a file may contain what the check looks for."""
        return self._names <= text.names and all(choice.is_met(text) for choice in self._choices)

    def may_admit(self, text: Text) -> bool:
        """Whether a file may contain it if those around it have a training loop."""
        return bool(self._of_loops) and all(choice.is_met(text) for choice in self._others)

    def admits_among(self, text: Text, around: Text) -> bool:
        """Whether a file may contain it, given what stands in those around it; `may_admit` has been asked before."""
        here = [choice.is_met(text) for choice in self._of_loops]
        return (bool(self._others) or any(here)) and all(
            met or choice.is_met(around) for met, choice in zip(here, self._of_loops, strict=True)
        )


def _is_of_loops(entry: str | tuple[str, ...]) -> bool:
    return entry in _OF_LOOPS or (isinstance(entry, tuple) and "*backward" in entry)


def _choice(entry: str | tuple[str, ...]) -> _Choice:
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
