"""Colour and safe text for terminals."""

import io
import os
import sys
import unicodedata

TYPE_CHECKING = False  # `typing` is needed for nothing else
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

JOINERS = "\u200c\u200d"


def wants_color(stream: "TextIO") -> bool:
    """Whether to write colours: as NO_COLOR or else FORCE_COLOR says, otherwise if the stream is a terminal with colours.

    Empty variables do not count: https://no-color.org, https://force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def harmless(text: str) -> str:
    """The text with a visible stand-in for each character that moves the cursor, ends the line or reorders text."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))  # the picture of the control character
    category = unicodedata.category(character)
    return "\ufffd" if category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in JOINERS else character


def painter(color: bool) -> "Callable[[str, str], str]":
    """What gives a text a style of rich, such as `bold red`, where colours are wanted."""
    if not color:
        return lambda text, style: text
    from rich.style import Style  # not needed without colour

    return lambda text, style: Style.parse(style).render(text)


def width_of(character: str) -> int:
    """How many cells of a terminal a character takes."""
    if unicodedata.category(character) in ("Mn", "Me") or character in JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def standard_error() -> "TextIO":
    """Standard error; a process that has none writes into nothing, and not into its standard output."""
    return sys.stderr if sys.stderr is not None else io.StringIO()
