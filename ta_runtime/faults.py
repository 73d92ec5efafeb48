"""Where an exception comes from: what ours raises stays inside, and what interrupts ours passes on to the user.

A signal handler, or a thread that sends an exception to another, raises in whatever runs. If it is ours that runs, the run has to
get that exception as if ours were not there.
"""

import inspect
import opcode
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from ta_lint.core import errors

PASSED_OVER = " (as importlib._bootstrap)"
"""Ends the file of a code object whose frames `warnings` and `logging` do not count as a level of the stack: so they take
the frames of which the file has both words in its name, as those of an import."""

CALLED_FOR = "<called for a line>"
"""The qualified name of code that makes a call for a line of the run's, of whose file and line it is."""

_OWN = str(Path(__file__).parent) + os.sep
_LIBRARY_PARTS = {"site-packages", "dist-packages"}
_BETWEEN = {
    opcode.opmap[name]
    for name in ("RESUME", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
    if name in opcode.opmap
}
"""Instructions that raise nothing themselves: Python looks there whether somebody wants to interrupt."""


@lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a code object's file belongs to Python, torch, an installed package or this tool."""
    if filename.startswith("<") and not filename.startswith("<ipython"):
        return True
    path = Path(filename).absolute()
    return not _LIBRARY_PARTS.isdisjoint(path.parts) or str(path).startswith(_library_roots())


@lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    torch = find_spec("torch")
    roots = [
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        _OWN.removesuffix(os.sep),
        str(Path(errors.__file__).parents[1]),
    ]
    if torch is not None and torch.origin is not None:
        roots.append(str(Path(torch.origin).parent))
    return tuple(f"{root}{os.sep}" for root in roots)


_over = False


@contextmanager
def after_the_run() -> Iterator[None]:
    """Nothing of the user's runs inside: what comes from outside has nowhere to pass on to."""
    global _over
    _over = True
    try:
        yield
    finally:
        _over = False


def passes(error: BaseException) -> bool:
    """Whether an exception came from outside while ours ran: from a signal handler, or sent by another thread."""
    if _over:
        return False
    outer: FrameType | None = None
    trace = error.__traceback__
    last: TracebackType | None = None
    while trace is not None:
        if outer is not None and _handles_signal(trace.tb_frame, outer):
            return True
        outer, last, trace = trace.tb_frame, trace, trace.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    if not _is_empty(code) and code.co_code[last.tb_lasti] in _BETWEEN:
        return True
    # a class of the user's, raised where none of the user's code ran
    return not is_users(error) and _is_users_class(type(error))


def _is_empty(code: CodeType) -> bool:
    """Whether a code object only names a place in a traceback, as a module in C or Cython puts it there: it has no instruction."""
    return not (code.co_consts or code.co_names or code.co_varnames)


def is_users(error: BaseException) -> bool:
    """Whether code of the user's raised an exception: such as a property that ours asked for."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or is_library(trace.tb_frame.f_code.co_filename):
        return False
    frame = trace.tb_frame
    first = frame.f_locals.get(next(iter(frame.f_code.co_varnames), ""))
    return not type(first).__module__.startswith("ta_runtime.")  # a method that was put into a class of ours


def _handles_signal(frame: FrameType, outer: FrameType) -> bool:
    """Whether Python called a function for a signal: with its number, and the frame that it interrupted."""
    code, known = frame.f_code, frame.f_locals
    if code.co_filename.startswith(_OWN):
        return False
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    given: list[object] = []
    for name in code.co_varnames[:count]:
        value = known.get(name)
        given += value if isinstance(value, tuple) else (value,)
    return any(each is outer and isinstance(number, int) for number, each in pairwise(given))


def _is_users_class(kind: type[BaseException]) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and not is_library(file)


def is_own_file(filename: str) -> bool:
    """Whether code of this file is this package's own, or stands in for that of torch."""
    return filename.startswith(_OWN) or filename.endswith(PASSED_OVER)


def is_ours(code: CodeType) -> bool:
    """Whether code is of such a file, or makes a call for a line of the run's."""
    return is_own_file(code.co_filename) or code.co_qualname == CALLED_FOR


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are ours."""
    frames = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code):
            frames.append(trace)
        trace = trace.tb_next
    for one in reversed(frames):
        trace = TracebackType(trace, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return trace


def keep(error: BaseException) -> None:
    """What an `except` that keeps all does first: raise what came from outside again."""
    if passes(error):
        raise error


class Shield:
    """Keeps what goes wrong inside, and has `failed` called with it; what comes from outside passes."""

    def __init__(
        self,
        *kinds: type[Exception],
        failed: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        self._kinds, self._failed = kinds or (Exception,), failed

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, self._kinds) or passes(error):
            return False
        self._failed(error)
        return True
