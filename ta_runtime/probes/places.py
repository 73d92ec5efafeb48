"""Where things happen: the user's line behind a call.

Frames of libraries are passed over, so that a place is always in the user's own code; it is found by walking the stack
and costs microseconds, so the observers ask only when something is built, or on a step that is looked at.
"""

import ast
import dis
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from ta_lint.events.place import NOWHERE as NOWHERE  # noqa: PLC0414 - places are asked for it
from ta_lint.events.place import Place as Place  # noqa: PLC0414
from ta_runtime.faults import CALLED_FOR, PASSED_OVER, is_own_file
from ta_runtime.faults import is_library as is_library  # noqa: PLC0414 - places are asked for it
from ta_runtime.probes.work import own_work

_MOST = 4096  # code objects that are remembered


def here() -> Place:
    """The innermost line of the user's code on the stack."""
    return behind(sys._getframe(1))


def behind(frame: FrameType | None) -> Place:
    """The innermost line of the user's code from a frame outwards; cheap enough to be asked at each call."""
    while frame is not None:
        code = frame.f_code
        entry = _known.get(id(code)) or _learn(code)
        if (known := entry[1]) is not None:
            instruction = frame.f_lasti
            if (place := known.get(instruction)) is None:
                place = known[instruction] = of_frame(frame)
            return place
        frame = frame.f_back
    return NOWHERE


class Scope(NamedTuple):
    """A function or class of the user's: its file and its qualified name, empty at module level."""

    path: str
    name: str


def scopes() -> Iterator[Scope]:
    """The user's functions on the stack, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename):
            yield scope_of(code)
        frame = frame.f_back


def scope_of(code: CodeType) -> Scope:
    name = "" if code.co_name == "<module>" else code.co_qualname.replace(".<locals>", "")
    return Scope(code.co_filename, name)


def comes_through(package: str) -> bool:
    """Whether a function of an installed package lies between the innermost line of the user's code and this call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (_known.get(id(code)) or _learn(code))[1] is not None:
            return False
        if (frame.f_globals.get("__name__") or "").partition(".")[0] == package:
            return True
        frame = frame.f_back
    return False


_known: dict[int, tuple[CodeType, dict[int, Place] | None]] = {}
"""The places in the user's code that were asked for; None for that of a library. By id, as equal code of two files is
equal, and as a code object hashes all that it holds."""


def _learn(code: CodeType) -> tuple[CodeType, dict[int, Place] | None]:
    if len(_known) == _MOST:
        _known.clear()
    entry = _known[id(code)] = (code, None if is_library(code.co_filename) else {})
    return entry


def of_frame(frame: FrameType) -> Place:
    """The line that a frame is in."""
    return _place(frame.f_code.co_filename, frame.f_code, frame.f_lasti)


def of_trace(trace: TracebackType) -> Place:
    """The line of a frame that an error came through: the frame itself may have gone on to a `finally`."""
    code = trace.tb_frame.f_code
    return _place(code.co_filename, code, trace.tb_lasti)


def built(instance: object) -> Place:
    """The user's line that is building an object: its own methods, such as its constructors, are passed over."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename) and not _is_method_of(instance, frame):
            return of_frame(frame)
        frame = frame.f_back
    return NOWHERE


def _is_method_of(instance: object, frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is instance


def passed_over(code: CodeType) -> CodeType:
    """The code of a wrapper: what warns from inside counts the levels of the stack as if there were no wrapper."""
    if code.co_filename.endswith(PASSED_OVER):
        return code
    return code.replace(co_filename=code.co_filename + PASSED_OVER)


def caller() -> FrameType:
    """The frame that called a wrapped function, past the frames of all that has wrapped it."""
    frame = sys._getframe(1)
    while (above := frame.f_back) is not None and is_own_file(frame.f_code.co_filename):
        frame = above
    return frame


def as_from(
    frame: FrameType, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call as if the line of a frame made it, and not the one that does.

    What warns in C warns in the name of the innermost frame of Python: of its file and line, and once for the module.
    """
    code = _call(frame.f_code.co_filename, frame.f_lineno)
    return eval(code, frame.f_globals, {"function": function, "args": args, "kwargs": kwargs})


def named_caller(frame: FrameType) -> FrameType:
    """The frame as if whose line a frame makes a call; any other frame is itself."""
    if frame.f_code.co_qualname != CALLED_FOR or frame.f_back is None:
        return frame
    named: FrameType = frame.f_back.f_locals["frame"]
    return named


@lru_cache(maxsize=4096)
@own_work
def _call(filename: str, line: int) -> CodeType:
    """The expression that calls a function, of this line and of no columns."""
    expression = ast.parse("function(*args, **kwargs)", mode="eval")
    for node in ast.walk(expression):
        if isinstance(node, (ast.expr, ast.keyword)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = -1
    return compile(expression, filename, "eval").replace(co_qualname=CALLED_FOR)


def discards(frame: FrameType) -> bool:
    """Whether the code of a frame throws away what the call returns in which it is: the call is a statement."""
    return _pops(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=256)
def _pops(code: CodeType, call: int) -> bool:
    following = (one.opname for one in dis.get_instructions(code) if one.offset > call)
    return next(following, "") == "POP_TOP"


@lru_cache(maxsize=4096)
def _place(filename: str, code: CodeType, instruction: int) -> Place:
    """The file is named beside the code object, as equal code of two files is equal."""
    line, last, column, end_column = next(islice(code.co_positions(), instruction // 2, None))
    if line is None or column is None or end_column is None:
        return Place(filename, line or code.co_firstlineno)
    return Place(filename, line, last, column, end_column)
