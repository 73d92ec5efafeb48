"""How much work something is, counted and not timed: equal on every machine, however busy it is.

To count calls makes Python take two and a half times as long, so that the watchdog alone, which is a clock but costs nothing, looks at everything, and
only what took long is done again and counted. It also ends what never comes back from C.
"""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

CALLS = 20_000_000
"""Calls of functions in 10 s, which is what a file below 1 MB may take: ta-lint makes 2 million in a second."""

SUSPICIOUS = 2.0
"""Seconds of CPU time from which on work is counted: a fifth of what is allowed."""

_FATAL = 120  # seconds of CPU time until the kernel ends the process


class Exhausted(BaseException):
    """More work was done than allowed. No `Exception`, which the linter would take for a crash of a check."""


@contextmanager
def limited(calls: int | None = None) -> Iterator[None]:
    """Raises `Exhausted` within what makes more calls than this in this thread; None stands for `CALLS`."""
    left = calls if calls is not None else CALLS

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event == "call" or event == "c_call"
        if left < 0:
            sys.setprofile(None)
            raise Exhausted

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
        if left < 0:
            raise Exhausted  # again: what must not stop the job may have caught it


@contextmanager
def watched() -> Iterator[None]:
    """The kernel ends this process with SIGXCPU if what runs in this context takes more than two minutes of CPU time."""
    before = resource.getrlimit(resource.RLIMIT_CPU)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(usage.ru_utime + usage.ru_stime) + _FATAL, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)
