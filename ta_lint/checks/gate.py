"""The gate: what the text of a file must hold before a check looks at it.

Of all that a run does to a file this is done most often, so words are looked up, and no question is asked twice.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Union

Needs = tuple[Union[str, "Needs"], ...]

# Words without a character that means something in a regular expression: `zero_grad|torch\.save\(`.
_TEXTS = re.compile(r"(?:[\w ]|\\[.()])+(?:\|(?:[\w ]|\\[.()])+)*")

# Names as a whole: `\bAdam\b`, `\b(?:Adam|AdamW)\b`, `\bAdam\b|\bAdamW\b`.
_NAMES = re.compile(r"\\b\(\?:\w+(?:\|\w+)*\)\\b|\\b\w+\\b(?:\|\\b\w+\\b)*")
_MARKS = re.compile(r"\\b|\(\?:|\)|\|")

# Each byte as it is in a name, and a space for all others.
_SPACED = bytes(code if re.match(rb"\w", bytes([code])) else ord(" ") for code in range(256))


class Text:
    """The bytes of a file, and what has been asked of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.answers: dict[str, bool] = {}

    @cached_property
    def names(self) -> frozenset[bytes]:
        """All that `\\b\\w+\\b` finds."""
        return frozenset(self.data.translate(_SPACED).split())


Need = Callable[[Text], bool]


def need(wanted: str | Needs) -> Need:
    """The test of one entry of `NEEDS`: an expression, or a tuple, of which any one has to hold."""
    if isinstance(wanted, str):
        return _expression(wanted)
    tests = [need(entry) if isinstance(entry, str) else _every(entry) for entry in wanted]
    return lambda text: any(test(text) for test in tests)


def _every(wanted: Needs) -> Need:
    tests = [need(entry) for entry in wanted]
    return lambda text: all(test(text) for test in tests)


@cache
def _expression(pattern: str) -> Need:
    if _NAMES.fullmatch(pattern):
        names = frozenset(name.encode() for name in _MARKS.split(pattern) if name)
        return lambda text: not names.isdisjoint(text.names)
    search = _search(pattern)

    def holds(text: Text) -> bool:
        answer = text.answers.get(pattern)
        if answer is None:
            answer = text.answers[pattern] = bool(search(text.data))
        return answer

    return holds


def _search(pattern: str) -> Callable[[bytes], object]:
    if not _TEXTS.fullmatch(pattern):
        return re.compile(pattern.encode(), re.MULTILINE).search
    texts = [re.sub(r"\\(.)", r"\1", text).encode() for text in pattern.split("|")]
    return lambda data: any(text in data for text in texts)
