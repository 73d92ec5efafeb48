"""The bytes in which a file can be searched: names in the letters that Python reads them in, and line feeds for line ends.

Python takes a `torch` in full-width or mathematical letters for the plain one (PEP 3131), and a carriage return alone for
the end of a line. An expression over bytes knows neither, and of an encoding such as UTF-7 not even the letters.
"""

import re
import unicodedata

# The first two lines may declare an encoding (PEP 263); most that do declare UTF-8.
_DECLARED = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=](?![ \t]*(?i:utf[-_]?8)\b)"
)

# A comment, a string or a name: what stands in the first two is none.
_TOKEN = re.compile(
    r"#[^\r\n]*+"
    r"|'''(?:[^'\\]|\\.|'(?!''))*+'''|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\""
    r"|'(?:[^'\\\r\n]|\\.)*+'|\"(?:[^\"\\\r\n]|\\.)*+\""
    r"|(?P<name>[^\W\d]\w*+)",
    re.DOTALL,
)


def searchable(data: bytes) -> bytes:
    """The bytes of a file, as those of nearly all are; otherwise, in UTF-8, the text that Python reads in them.

    What cannot be decoded is left as it is.
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
        if any(map(str.isascii, plain)):  # expressions look for nothing else
            text = text.replace(letter, plain)
    return text.encode("utf-8", "surrogatepass")


def disguised_names(text: str) -> dict[str, str]:
    """The names of a text that Python reads in other letters, and in which; those in strings do not count."""
    if text.isascii() or not _disguises(text):
        return {}
    names = {found["name"] for found in _TOKEN.finditer(text) if found["name"] is not None}
    return {name: plain for name in names if (plain := unicodedata.normalize("NFKC", name)) != name}


def undisguised(text: str) -> str:
    """A text with its names as Python reads them, and every character in its place.

    A name that is read in more letters than it is written in, as one with a ligature is, has no room for them and stays.
    """
    plain = {name: read for name, read in disguised_names(text).items() if len(name) == len(read)}
    return _TOKEN.sub(lambda found: plain.get(found[0], found[0]), text) if plain else text


def _disguises(text: str) -> dict[str, str]:
    """The characters of a text that Python reads as others in a name, and as which."""
    return {
        letter: plain
        for letter in set(text)
        if letter > "\x7f"
        and f"_{letter}".isidentifier()
        and (plain := unicodedata.normalize("NFKC", letter)) != letter
    }
