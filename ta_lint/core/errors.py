"""What went wrong, said so that the user can mend it, or report it."""

from collections.abc import Iterable


class UsageError(Exception):
    """A mistake in what the user gave: the message names the file or key and the remedy. Exit status 2."""


class Unreadable(Exception):
    """A file that cannot be decoded or parsed: where (from 1) and why."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason, line, column)
        self.reason = reason
        self.line = line
        self.column = column


def refused(error: SyntaxError, above: int = 0) -> Unreadable:
    """What Python refuses, in a part of a file that this many lines stand above."""
    reason = error.msg.splitlines()[0]
    return Unreadable(
        f"Python cannot parse this: {reason}", (error.lineno or 1) + above, max(error.offset or 1, 1)
    )


PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is nobody's defect: who catches everything else lets these pass."""


def crash(doing: str, error: BaseException) -> str:
    """What a defect of ours did, in a line: what was being done, what was raised, and the last line of ours before that.

    Of a recursion that is the line of ten thousand frames; a page of them says no more.
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
    """The first line of an exception's text, or its class name: never a page of it."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - of an error that cannot say what it is, as libcst has had
        text = ""
    return (text or type(error).__name__).splitlines()[0][:200]


def hint(word: str, known: Iterable[str], most: int = 1) -> str:
    """A question whether one of the nearest words is meant; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(word, sorted(known), n=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""
