"""What went wrong, said so that the user can mend it, or report it."""

import os
import traceback

from collections.abc import Iterable


class UsageError(Exception):
    """A mistake in what the user gave: the message names the file or key and the remedy. Exit status 2."""


PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is nobody's defect: who catches everything else lets these pass."""

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


def crash(doing: str, error: BaseException) -> str:
    """What a defect of ours did, in a line: what was being done, what was raised, and the last line of ours before that.

    Of a recursion that is the line of ten thousand frames; a page of them says no more.
    """
    message = f"{doing} raised {type(error).__name__}: {oneline(error)}"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE + os.sep):
            place = f" ({os.path.relpath(file, os.path.dirname(_PACKAGE))}:{line})"
    return message + place


def oneline(error: BaseException) -> str:
    """The first line of an exception's text, or its class name: never a page of it."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def hint(word: str, known: Iterable[str], most: int = 1) -> str:
    """A question whether one of the nearest words is meant; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(word, sorted(known), n=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""
