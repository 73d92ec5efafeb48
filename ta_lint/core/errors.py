"""Errors with messages that let the user fix the cause, or report a bug."""

from collections.abc import Iterable


class UsageError(Exception):
    """A mistake in the user's input; the message names the file or key and the remedy. Exit status 2."""


class Unreadable(Exception):
    """A file cannot be decoded or parsed; holds the position, from 1, and the reason."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason, line, column)
        self.reason = reason
        self.line = line
        self.column = column


def refused(error: SyntaxError, above: int = 0) -> Unreadable:
    """A syntax error as `Unreadable`; `above` is the number of lines above the text that was parsed."""
    reason = error.msg.splitlines()[0]
    return Unreadable(
        f"Python cannot parse this: {reason}", (error.lineno or 1) + above, max(error.offset or 1, 1)
    )


PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that are no bug: code that catches everything else lets these pass."""


def crash(doing: str, error: BaseException) -> str:
    """One line about a bug in ta-lint: what it was doing, the exception, and the last line of our code in the traceback.

    After a recursion error, thousands of frames are at that one line, so a full traceback would say no more.
    """
    from pathlib import Path

    package = Path(__file__).parents[1]
    place = ""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(str(package)):
            place = f" ({Path(file).relative_to(package.parent).as_posix()}:{step.tb_lineno})"
        step = step.tb_next
    return f"{doing} raised {type(error).__name__}: {oneline(error)}{place}"


def oneline(error: BaseException) -> str:
    """The first line of an exception's text, or its class name; at most 200 characters."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - `str` itself may fail, as it did for an error of libcst
        text = ""
    return (text or type(error).__name__).splitlines()[0][:200]


def hint(word: str, known: Iterable[str], most: int = 1, beside: str = "") -> str:
    """`; did you mean ...?` with the closest known words; empty if none is close.

    `beside` is how all words begin that count, which makes none of them closer.
    """
    import difflib

    rests = sorted(each.removeprefix(beside) for each in known if each.startswith(beside))
    near = difflib.get_close_matches(word.removeprefix(beside), rests, n=most)
    return f"; did you mean {' or '.join(beside + each for each in near)}?" if near else ""
