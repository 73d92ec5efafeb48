"""The course of a run: a stack of open events, each recorded when it ends."""

from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch

from ta_lint.core.protocol import Action
from ta_runtime.probes.places import NOWHERE, behind
from ta_runtime.trace.event import KIND_OF, Event, Flag
from ta_runtime.trace.signatures import NO_RESULT, Result, Signatures

LOUD, LAYERS_QUIET, QUIET = range(3)
"""What is recorded inside an event: everything; all but calls of modules and functions; nothing."""

GRAD, TRAINING, AUTOCAST, REQUIRES_GRAD = map(
    int, (Flag.GRAD, Flag.TRAINING, Flag.AUTOCAST, Flag.REQUIRES_GRAD)
)
RAISED, COMPILED, WHOLE = map(int, (Flag.RAISED, Flag.COMPILED, Flag.WHOLE))

_STEP = KIND_OF[Action.STEP]
_TRAINS = (_STEP, KIND_OF[Action.BACKWARD])

records = torch.is_grad_enabled


def _autocasts() -> bool:
    return torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu")


# not public; without it, the two likely kinds of devices are asked
autocasts: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", _autocasts)
"""Whether autocast is on, for any kind of device."""

_new = tuple.__new__


class Open(NamedTuple):
    """An event that has begun; a tuple, because an object with attributes takes three times as long to make."""

    seq: int
    parent: int
    step: int
    phase: str
    kind: str
    name: str
    subject: str
    flags: int
    file: str
    line: int
    told: bool
    quiet: int
    """Its value outside the event, as `training` is."""
    training: int
    of: object
    """The module that is called, or the optimizer that steps, by which the end finds its beginning."""
    error: BaseException | None
    """The exception that was being handled when it began."""


class Course:
    """Passes the events of one thread to a sink, each when it ends.

    `turn` is called when a step has ended and no event is open, so that all events of the step are recorded. `hush` is called
    when recording of function calls stops, and when it resumes.
    """

    __slots__ = (
        "_turn", "_waits", "hush", "is_on", "lines", "open", "quiet", "seq", "signatures", "sink", "state", "step",
        "training", "whole",
    )  # fmt: skip

    def __init__(self, sink: Callable[[Event], object], turn: Callable[[], None]) -> None:
        self.sink, self._turn = sink, turn
        self.hush: Callable[[bool], object] | None = None
        self.signatures = Signatures()
        self.is_on = False
        self.step = 0
        self.whole = 0
        """`WHOLE` in a step that is traced at the full level, else 0."""
        self.seq = 0
        self.open: list[Open] = []
        self.quiet = LOUD
        self.training = 0
        """`TRAINING` while a module runs that is in training mode."""
        self.state = "setup"
        """The phase outside of all events, judged by the modes of models."""
        self._waits = False  # a step has ended, and some of its events are open

    def phase(self, kind: str) -> str:
        """The phase of an outermost event; steps and clipping are training although they run without gradients."""
        trains = records() or kind in _TRAINS
        return "eval" if self.state == "train" and not trains else self.state

    def begin(
        self,
        kind: str,
        name: str,
        subject: str,
        quiet: int,
        frame: FrameType,
        *,
        told: bool = True,
        of: object = None,
        error: BaseException | None = None,
        training: int | None = None,
        phase: str = "",
    ) -> Open:
        """Begin an event, which stays open until its `end`.

        An event that is not `told` is not recorded and only keeps its inside quiet: events inside it get its parent.
        """
        stack = self.open
        parent = -1
        if stack:
            around = stack[-1]
            parent = around.seq
            phase = phase or around.phase
        seq = parent
        if told:
            seq = self.seq
            self.seq = seq + 1
        outside = self.training
        if training is not None:
            self.training = training
        flags = self.whole | self.training
        if records():
            flags |= GRAD
        if autocasts():
            flags |= AUTOCAST
        file, line = line_behind(frame)
        event = _new(
            Open,
            (
                seq, parent, self.step, phase or self.phase(kind), kind, name, subject, flags, file, line, told,
                self.quiet, outside, of, error,
            ),
        )  # fmt: skip
        stack.append(event)
        if quiet > self.quiet:
            if not self.quiet and self.hush is not None:
                self.hush(True)
            self.quiet = quiet
        return event

    def end(
        self,
        event: Open,
        inputs: str = "",
        arguments: str = "",
        result: Result = NO_RESULT,
        digest: int | None = None,
        value: float | None = None,
        flags: int = 0,
    ) -> None:
        """End an event, and all events still open inside it, whose ends were missed."""
        if self.close(event):
            self.tell(event, inputs, arguments, result, digest, value, flags)
            if self._waits and not self.open:
                self._waits = False
                self._turn()

    def close(self, event: Open) -> bool:
        """Close an event without recording it; False if it was not open."""
        stack = self.open
        if not stack or stack[-1] is not event:
            if not any(each is event for each in stack):
                return False
            while stack[-1] is not event:
                self.end(stack[-1], flags=RAISED)
        stack.pop()
        self.training = event.training
        if self.quiet != event.quiet:
            self.quiet = event.quiet
            if not event.quiet and self.hush is not None:
                self.hush(False)
        return True

    def tell(
        self,
        event: Open,
        inputs: str,
        arguments: str,
        result: Result,
        digest: int | None,
        value: float | None,
        more_flags: int,
    ) -> None:
        seq, parent, step, phase, kind, name, subject, flags, file, line, told, *_ = event
        if told:
            end = self.seq
            self.seq = end + 1
            self.sink(
                _new(
                    Event,
                    (
                        step, phase, seq, end, parent, kind, name, subject, inputs, result[0], result[1], arguments,
                        digest, value, flags | more_flags, file, line,
                    ),
                )
            )  # fmt: skip

    def abandon(self, optimizer: object = None) -> None:
        """End steps that raised, whose ends were missed.

        A step without a closure draws no batch and contains no step of the same optimizer, so either of these shows that the
        open step is over.
        """
        stack = self.open
        while stack and self.quiet == LAYERS_QUIET and stack[-1].kind == _STEP and stack[-1].of is not None:
            if optimizer is not None and stack[-1].of is not optimizer:
                return
            self.end(stack[-1], flags=RAISED)

    def over(self) -> None:
        """A step has ended."""
        if self.open:
            self._waits = True
        else:
            self._turn()

    def clear(self) -> None:
        """Forget what is open."""
        self.open.clear()
        self.quiet, self.training, self._waits = LOUD, 0, False


def line_behind(frame: FrameType | None) -> tuple[str, int]:
    """The file and line of the user's code that runs, from a frame outwards; an empty name and 0 where there is none."""
    place = behind(frame)
    return (place.path, place.line) if place is not NOWHERE else ("", 0)


def number(value: Any) -> float | None:
    """A result as a float if it is a Python number, else None."""
    return float(value) if type(value) in (int, float, bool) else None
