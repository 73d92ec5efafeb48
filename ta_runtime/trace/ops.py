"""Tells of the calls of functions and methods of torch, by a `TorchFunctionMode`; those inside of another are not seen."""

import sys
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, handle_torch_function

from ta_runtime.faults import keep
from ta_runtime.probes.places import as_from
from ta_runtime.probes.work import OWN_WORK
from ta_runtime.trace import titles
from ta_runtime.trace.course import (
    AUTOCAST,
    GRAD,
    REQUIRES_GRAD,
    Course,
    autocasts,
    line_behind,
    number,
    records,
)
from ta_runtime.trace.event import Event

# not public, but all that torch's own modes are made of: `with` can only put a mode above the others
_push, _pop = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack
_count = torch._C._len_torch_function_stack

_HANDLING = handle_torch_function.__code__
_new = tuple.__new__
_Function = tuple[str, Sequence[str]]
_UNKNOWN: _Function = ("", ())


class Ops(TorchFunctionMode):
    """Watches them between `attach` and `detach`, from the first forward pass on; `names` are those that are wanted, None: all.

    What torch's own loaders, optimizers and backward passes call inside is theirs, and differs from device to device: it is
    not told, and so is nothing of what builds a model.
    """

    def __init__(
        self, course: Course, failed: Callable[[str, Exception], None], names: Collection[str] | None
    ) -> None:
        super().__init__()
        self._course, self._failed, self._wanted = course, failed, names
        self._functions: dict[Callable[..., Any], _Function | None] = {}
        self._known = self._functions.get
        titles.names()
        self.is_on = False
        self._is_hushed = False

    def attach(self) -> None:
        if not self.is_on:
            self.is_on = True
            self._course.hush = self._hush
            self._is_hushed = bool(self._course.quiet)
            if not self._is_hushed:
                self._put_on()

    def detach(self) -> None:
        if self.is_on:
            self.is_on = False
            self._course.hush = None
            if not self._is_hushed:
                self._take_off()

    def _hush(self, quiet: bool) -> None:
        """Within what is quiet, the mode is off, as each call would pass through it."""
        if quiet:
            self._is_hushed = self._take_off()
        elif self._is_hushed:
            self._is_hushed = False
            self._put_on()

    def _put_on(self) -> None:
        """Below all other modes, which may come and go in the meantime, and see the same calls as before."""
        above = [_pop() for _ in range(_count())]
        _push(self)
        for mode in reversed(above):
            _push(mode)

    def _take_off(self) -> bool:
        """False if it is not there: the call runs now that it tells of."""
        above = [_pop() for _ in range(_count())]
        for mode in reversed(above):
            if mode is not self:
                _push(mode)
        return self in above

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        known = self._known(function, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._learn(function)
        course = self._course
        if known is None or course.quiet or OWN_WORK.depth or course.state == "setup" or not course.is_on:
            return self._called(sys._getframe(1), function, args, kwargs or {})
        seq = course.seq
        course.seq = seq + 1
        result = self._called(sys._getframe(1), function, args, kwargs or {})
        try:
            name, parameters = known
            signatures = course.signatures
            inputs, arguments = signatures.given(parameters, args, kwargs)
            dtype, shape = signatures.result(result)
            flags = course.whole | course.training
            if records():
                flags |= GRAD
            if autocasts():
                flags |= AUTOCAST
            value = None
            if type(result) is Tensor:
                if result.requires_grad:
                    flags |= REQUIRES_GRAD
            else:
                value = number(result)
            file, line = line_behind(sys._getframe(1))
            stack = course.open
            parent, phase = (stack[-1].seq, stack[-1].phase) if stack else (-1, course.phase("op"))
            end = course.seq
            course.seq = end + 1
            course.sink(
                _new(
                    Event,
                    (
                        course.step, phase, seq, end, parent, "op", name, "", inputs, dtype, shape, arguments, None, value,
                        flags, file, line,
                    ),
                )
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - the run goes on
            keep(error)
            self._failed(f"a call of {known[0]}", error)
        return result

    @staticmethod
    def _called(
        frame: FrameType, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The call as from the line that made it; a function in Python has come here by another of torch."""
        if frame.f_code is _HANDLING and frame.f_back is not None:
            frame = frame.f_back.f_back or frame
        return as_from(frame, function, args, kwargs)

    def _learn(self, function: Callable[..., Any]) -> _Function | None:
        """Its name and those of its parameters; None if it is not told."""
        name = titles.of_function(function)
        known = None
        if name is not None and (self._wanted is None or name in self._wanted):
            known = name, self._course.signatures.names(function)
        self._functions[function] = known
        return known
