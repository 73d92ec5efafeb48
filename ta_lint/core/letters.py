"""Normalises a file for byte searches: names in the letters that Python reads, and line feeds as line ends.

Python reads `torch` in full-width or mathematical letters as plain `torch` (PEP 3131), and a single carriage return as the
end of a line. A search over bytes knows neither, and in an encoding such as UTF-7 it does not even find the letters.
"""

import re
import unicodedata
from functools import lru_cache

from ta_lint.core.tokens import TOKEN

# An encoding other than UTF-8, declared in the first two lines (PEP 263).
_DECLARED = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=](?![ \t]*(?i:utf[-_]?8)\b)"
)

_PLAIN = bytes(range(128))


def searchable(data: bytes) -> bytes:
    """The bytes of a file, unchanged if they are plain ASCII; otherwise the text that Python reads, as UTF-8.

    Bytes that cannot be decoded stay as they are.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if data.isascii() and _DECLARED.match(data) is None:
        return data
    from ta_lint.core.errors import Unreadable
    from ta_lint.core.source import decode

    try:
        text = decode(data)
    except Unreadable:
        return data
    for letter, plain in _disguises(text).items():
        if any(map(str.isascii, plain)):  # searches look for ASCII only
            text = text.replace(letter, plain)
    return text.encode("utf-8", "surrogatepass")


def disguised_names(text: str) -> dict[str, str]:
    """The names in a text that Python reads in other letters, mapped to those; names in strings do not count."""
    if text.isascii() or not _disguises(text):
        return {}
    names = {found["name"] for found in TOKEN.finditer(text) if found["name"] is not None}
    return {name: plain for name in names if (plain := unicodedata.normalize("NFKC", name)) != name}


def undisguised(text: str) -> str:
    """The text with its names as Python reads them; no other character moves.

    A name that Python reads as more characters than it is written with, such as one with a ligature, stays.
    """
    plain = {name: read for name, read in disguised_names(text).items() if len(name) == len(read)}
    return TOKEN.sub(lambda found: plain.get(found[0], found[0]), text) if plain else text


def _disguises(text: str) -> dict[str, str]:
    """The characters in a text that Python reads as others in a name, mapped to those."""
    foreign = text.encode("utf-8", "surrogatepass").translate(
        None, _PLAIN
    )  # ten times as fast as an expression
    letters = {*foreign.decode("utf-8", "surrogatepass")}
    return {letter: plain for letter in letters if (plain := _read_as(letter)) != letter}


@lru_cache(1024)
def _read_as(letter: str) -> str:
    """A character as Python reads it in a name; itself if no name can hold it."""
    return unicodedata.normalize("NFKC", letter) if f"_{letter}".isidentifier() else letter
