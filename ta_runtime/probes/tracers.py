"""Trace and profile functions of the run's own see nothing of ours.

A debugger, a coverage tool or a profiler in Python puts one on by `sys.settrace` or `sys.setprofile`. Those in C are as they were.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch
from torch import _jit_internal

from ta_runtime.faults import is_ours
from ta_runtime.probes.patching import Call, End, watching
from ta_runtime.probes.places import named_caller
from ta_runtime.probes.threads import anywhere
from ta_runtime.probes.undo import Undo, WhileNeeded
from ta_runtime.probes.work import OWN_WORK

_ASKED = {
    function.__code__
    for function in (torch.compiler.is_compiling, _jit_internal.is_scripting, torch.cuda.is_initialized)
}
"""What ours asks of torch to see whether it may work."""


def _put_on(undo: Undo) -> None:
    for name in ("trace", "profile"):
        setting, getting = getattr(sys, f"set{name}"), getattr(sys, f"get{name}")
        setting(_filtered(getting()))
        undo.append(partial(_restore, setting, getting))
        undo.append(watching(sys, f"set{name}", _set, anywhere).undo)
        undo.append(watching(sys, f"get{name}", _get, anywhere).undo)


FILTERS = WhileNeeded(_put_on)
"""On while anybody watches."""


def _restore(setting: Callable[..., object], getting: Callable[[], object]) -> None:
    if isinstance(found := getting(), _Filtered):
        setting(found.function)


def _set(call: Call) -> None:
    call.args = tuple(map(_filtered, call.args))


def _get(call: Call) -> End:
    return _unfiltered


def _unfiltered(call: Call) -> None:
    if isinstance(call.result, _Filtered):
        call.result = call.result.function


class _Filtered:
    """Passes on to a trace or profile function of the run's what is not ours."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if OWN_WORK.depth:
            return None
        if event.startswith("c_") and (named := named_caller(frame)) is not frame:
            if argument.__name__.startswith("__"):  # an operator, which Python calls without a word
                return None
            frame = named
        return None if _is_hidden(frame) else self.function(frame, event, argument)


def _filtered(function: Any) -> Any:
    """One in C is called in another way than by Python."""
    is_python = isinstance(function, FunctionType | MethodType)
    is_python = is_python or isinstance(type(function).__call__, FunctionType)
    return _Filtered(function) if is_python and not isinstance(function, _Filtered) else function


def _is_hidden(frame: FrameType) -> bool:
    code, back = frame.f_code, frame.f_back
    return is_ours(code) or (code in _ASKED and back is not None and _is_hidden(back))
