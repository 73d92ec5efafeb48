"""What went wrong, said so that the user can mend it."""

from collections.abc import Iterable


class UsageError(Exception):
    """A mistake in what the user gave: the message names the file or key and the remedy. Exit status 2."""


def oneline(error: BaseException) -> str:
    """The first line of an exception's text, or its class name: never a page of it."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def hint(word: str, known: Iterable[str], most: int = 1) -> str:
    """A question whether one of the nearest words is meant; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(word, sorted(known), n=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""
