"""Our own work in a thread: no tensor subclass and no mode of the user's sees what is called of torch there."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch

from ta_runtime.faults import is_ours

_P = ParamSpec("_P")
_R = TypeVar("_R")

# not public, but all that torch's own modes are made of
_without_functions = torch._C.DisableTorchFunction
_count, _mode = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
_push, _pop = torch._C._push_on_torch_dispatch_stack, torch._C._pop_torch_dispatch_stack


class _Work(threading.local):
    depth = 0


OWN_WORK = _Work()
"""How deep in it this thread is: what is called of torch there is no part of the run, and in no trace of it."""


def apart(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method as our own work."""
    depth = OWN_WORK.depth
    try:
        OWN_WORK.depth = depth + 1
        if depth:
            return method(*args, **kwargs)
        with _without_functions():
            return _without_modes(method, args, kwargs) if _count() else method(*args, **kwargs)
    finally:  # to what it was: an interruption may come before it changed
        OWN_WORK.depth = depth


def _without_modes(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    modes = [_mode(number) for number in range(_count())]
    try:
        while _count():
            _pop(None)
        return method(*args, **kwargs)
    finally:
        for mode in modes[_count() :]:
            _push(mode)


def leave_out(error: BaseException) -> None:
    """Take the frames of ours out of a traceback down to the first of the run's or torch's, unless it ends in our own work.

    A frame of ours between the run and torch does so last with an exception that passes through it: a bare `raise` puts it
    into the traceback no more.
    """
    trace = error.__traceback__
    while trace is not None and not OWN_WORK.depth and is_ours(trace.tb_frame.f_code):
        trace = trace.tb_next
    error.__traceback__ = trace


def own_work(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that measures, and so calls torch."""

    @wraps(method)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if torch.compiler.is_compiling():
            return method(*args, **kwargs)
        result: _R = apart(method, args, kwargs)
        return result

    return run
