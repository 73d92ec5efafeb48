"""Counts the steps of a run by what its optimizers do."""

import weakref
from collections.abc import Callable, Iterable
from functools import partial

import torch

from ta_runtime.probes import construction, hub, steps
from ta_runtime.probes.hub import Run
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.steps import EndOfStep, StepCall
from ta_runtime.probes.undo import Undo

Optimizer = torch.optim.Optimizer


class StepCounter:
    """Counts the steps of some optimizers, or of all.

    `before` and `after` are called around each `optimizer.step()`, with the optimizer and whether it was given a
    closure; what `before` gives is called after each call of that closure; `over` when a step is over. `run` calls them all,
    as `FaultBarrier.run` does. After `doze` steps are but counted for a while.
    """

    def __init__(
        self,
        optimizers: Iterable[Optimizer] | None,
        before: Callable[[Optimizer, bool], Callable[[], object] | None],
        after: Callable[[Optimizer, bool], None],
        over: Callable[[], None],
        run: Run,
    ) -> None:
        self._index = self._counted = 0
        self._given = None if optimizers is None else [weakref.ref(optimizer) for optimizer in optimizers]
        self._before, self._after, self._over, self._run = before, after, over, run
        self._end = EndOfStep(lambda: self.optimizers)
        self._undo, self._watching, self._resting = Undo(), Undo(), Undo()
        self._since = 0  # how many steps had run when it fell asleep

    def attach(self) -> None:
        """Count from here on, until `detach`."""
        self._undo.append(partial(construction.detach, _nobody))
        construction.attach(_nobody)
        self._undo.append(hub.watch("skip", self._skip, self._run))
        self._watching.append(hub.watch("step", self._begin, self._run))

    def detach(self) -> None:
        """Let go of torch."""
        self.wake()
        self._watching()
        self._undo()

    @property
    def index(self) -> int:
        """The step that runs, or is to begin."""
        return self._index + self._slept

    @index.setter
    def index(self, index: int) -> None:
        self._index = index - self._slept

    @property
    def counted(self) -> int:
        """How often an optimizer has stepped."""
        return self._counted + self._slept

    @property
    def _slept(self) -> int:
        return steps.count() - self._since if self._resting else 0

    def doze(self, until: float) -> None:
        """Only count the steps before this one, as long as the one optimizer in use makes them."""
        alone = self._end.alone
        if alone is not None and self._watching and until > self.index + 1:
            self._since = steps.count()
            limit = self._since + until - self.index - 1
            self._resting.append(steps.sleep(steps.Rest(weakref.ref(alone), limit, self.wake)))
            self._watching()

    def wake(self) -> None:
        """Look at the next step again."""
        if self._resting:
            self._index, self._counted = self.index, self.counted
            self._watching.append(hub.watch("step", self._begin, self._run))
            self._resting()

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that are watched and known, in a fixed order."""
        if self._given is not None:
            return [optimizer for reference in self._given if (optimizer := reference()) is not None]
        known = {id(optimizer): optimizer for optimizer in construction.optimizers()}
        for optimizer in self._end.optimizers:
            known.setdefault(id(optimizer), optimizer)
        return list(known.values())

    def _begin(self, call: Call) -> End | None:
        assert isinstance(call, StepCall)
        optimizer: Optimizer = call.args[0]
        if not self._watches(optimizer):
            return None
        self.wake()
        if self._end.is_before(optimizer):
            self._close()
        called = self._before(optimizer, call.has_closure)
        if called is not None:
            call.follow_closure(called)
        return self._ended

    def _ended(self, call: Call) -> None:
        assert isinstance(call, StepCall)
        optimizer = call.args[0]
        self._after(optimizer, call.has_closure)
        self._counted += 1
        if self._end.is_with(optimizer):
            self._close()

    def _skip(self, call: Call) -> None:
        optimizer = call.given(1, "optimizer")
        if self._watches(optimizer):
            if self._end.is_before(optimizer):
                self._close()
            if self._end.is_with(optimizer):
                self._close()

    def _close(self) -> None:
        self.wake()
        self._end.turn()
        self._index += 1
        self._over()

    def _watches(self, optimizer: Optimizer) -> bool:
        return self._given is None or any(reference() is optimizer for reference in self._given)


def _nobody() -> None:
    pass
