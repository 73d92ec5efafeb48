"""Traces a training: tells a sink, event by event, what the loop, the model and torch do."""

import os
import weakref
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from ta_lint.core.errors import UsageError
from ta_runtime import reports
from ta_runtime.naming import Names
from ta_runtime.probes import hub
from ta_runtime.probes.compile import Compilers
from ta_runtime.probes.counter import StepCounter
from ta_runtime.probes.guard import FaultBarrier
from ta_runtime.probes.undo import Undo
from ta_runtime.trace.call_recorder import CallRecorder
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import WHOLE, Course
from ta_runtime.trace.distributed import Distributed
from ta_runtime.trace.event import LEVELS, Event
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.loading import LoaderRecorder
from ta_runtime.trace.loop import LoopRecorder
from ta_runtime.trace.modules import Modules
from ta_runtime.trace.ops import Ops
from ta_runtime.trace.saving import Saving
from ta_runtime.trace.states import States


class Tracer:
    """Watches every optimizer, model and loader of this process, in the thread that trains, until `stop`.

    Use it as a context manager around the training, or call `start` and `stop`.
    """

    def __init__(
        self,
        sink: Callable[[Event], object],
        *,
        level: str = "digests",
        every: int = 1,
        warm_up: int = 0,
        first: int = 0,
        names: Names | None = None,
        wanted: Collection[tuple[str, str]] | None = None,
        on_step_over: Callable[[int], object] | None = None,
    ) -> None:
        """What is told, and of which steps.

        Args:
            sink: called with each event when it is over; what it raises is said, and does not reach the run.
            level: of `event.LEVELS`.
            every: of the steps after the first `warm_up`, each so-manieth is WHOLE: traced at the level. Of the others the
                loop alone is told.
            warm_up: so many steps at the beginning are not WHOLE.
            first: so many steps after them are WHOLE in any case.
            names: what layers and parameters are called, if somebody else names those of this run as well.
            wanted: kinds and names of the events to tell, an empty name for all of a kind; None: all of the level.
            on_step_over: called with the number of each step when all its events are told.

        Raises:
            UsageError: there is no such level, or a number is too small.
        """
        if level not in LEVELS:
            raise UsageError(f"level: {level!r} is none of {', '.join(LEVELS)}")
        for name, value, least in (("every", every, 1), ("warm_up", warm_up, 0), ("first", first, 0)):
            if value < least:
                raise UsageError(f"{name}: {value} must be at least {least}")
        self._every, self._warm_up, self._first = every, warm_up, first
        self._started = False
        self._looks = False  # into the step that runs
        self._on_step_over = on_step_over or _nothing
        failed = reports.FailureReporter(
            self.fall_silent, "the trace is not complete", "the run is not traced any more"
        )
        self._barrier = FaultBarrier(failed, looks_at_captures=True)
        choice = Choice(level, wanted)
        self._course = course = Course(sink, self._turn)
        layers = LayerNames(names or Names())
        recorder = CallRecorder(course, choice)
        self._states = States(course, layers, choice)
        loop = LoopRecorder(recorder, layers, self._states)
        run = self._barrier.run
        self._modules = Modules(course, layers, failed, names=choice.names("module"), digests=choice.digests)
        self._ops = Ops(course, failed, choice.names("op"))
        self._tells_ops = choice.of("op")
        self._steps = StepCounter(None, loop.before_step, loop.after_step, course.over, run)
        self._compilers = Compilers(self._compiles)
        self._parts = (loop, LoaderRecorder(course, choice), Distributed(recorder), Saving(recorder, layers))
        self._undo = Undo()

    def start(self) -> None:
        """Watch from here on; nothing happens if it is on."""
        if self._started:
            return
        self._started = True
        self._course.is_on = self._barrier.on = True
        _live.add(self)
        run = self._barrier.run
        try:
            self._undo.append(self._steps.detach)
            self._steps.attach()
            for part in self._parts:
                self._undo.append(hub.subscribe(part, run))
            self._undo.append(hub.subscribe(self._compilers, run))
            self._begin()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Let go of torch. Of what is open then nothing is told."""
        if not self._started:
            return
        self._started = False
        self.fall_silent()
        _live.discard(self)
        self._look(False)
        self._undo()
        self._course.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def step(self) -> int:
        """The step that runs, or is to begin."""
        return self._course.step

    def forget(self) -> None:
        """In a process that was forked off: be silent."""
        self.fall_silent()
        self._ops.detach()

    def fall_silent(self) -> None:
        """Tell of nothing any more; `stop` lets go of torch."""
        self._course.is_on = self._barrier.on = False

    def _begin(self) -> None:
        """A step begins: only one that is WHOLE is looked into."""
        since = self._course.step - self._warm_up
        whole = since >= 0 and (since < self._first or since % self._every == 0)
        if whole != self._looks:
            self._look(whole)

    def _look(self, whole: bool) -> None:
        self._looks = whole
        self._course.whole = WHOLE if whole else 0
        compiled = self._compilers.used
        if not whole:
            self._modules.detach()
        elif compiled:
            self._modules.attach_compiled()
        else:  # also if none are told: they say which models there are, and in which phase
            self._modules.attach()
        if whole and self._tells_ops and not compiled:
            self._ops.attach()
        else:
            self._ops.detach()

    def _turn(self) -> None:
        """A step is over, and the next begins."""
        course = self._course
        over, course.step = course.step, self._steps.index
        self._states.turn()
        self._on_step_over(over)
        if course.is_on:
            self._begin()

    def _compiles(self) -> None:
        """Hooks that are there when a model is compiled would become part of it."""
        import torch._dynamo.eval_frame  # noqa: F401 - as `torch.compile` does next

        self._modules.detach()
        self._look(self._looks)


_live: "weakref.WeakSet[Tracer]" = weakref.WeakSet()


def _forked() -> None:
    for tracer in list(_live):
        tracer.forget()


os.register_at_fork(after_in_child=_forked)


def _nothing(step: int) -> None:
    pass
