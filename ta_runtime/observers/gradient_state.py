"""The state of one optimizer's gradients, followed from action to action by the objects and version counters of two of them.

No value is read: an object that is gone was cleared, and a version that changed was written to. Writes through `.data`, which
change no version, are found by `stepping`.
"""

import weakref
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, LoopHistory, ObservedAction
from ta_runtime.probes.places import NOWHERE, Place

_MOST_EVENTS = 48  # from one step to the next; equal ones in a row count once
_MOST_PATTERNS = 64
_SETTLED = 32


class Change(IntEnum):
    """What happened to a gradient since it was last looked at."""

    NONE = 0
    GONE = 1
    WRITTEN = 2
    REPLACED = 3


class _Sample:
    """The gradient of one parameter as it was last seen."""

    __slots__ = ("_gradient", "_parameter", "_version")

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = weakref.ref(parameter)
        self._gradient: weakref.ref[Tensor] | None = None
        self._version = 0
        self.look()

    @property
    def parameter(self) -> Tensor | None:
        return self._parameter()

    @property
    def gradient(self) -> Tensor | None:
        parameter = self._parameter()
        return None if parameter is None else parameter.grad

    def look(self) -> Change:
        parameter, before = self._parameter(), self._gradient
        gradient = None if parameter is None else parameter.grad
        if gradient is None:
            self._gradient = None
            return Change.NONE if before is None else Change.GONE
        version = gradient._version
        if before is None or before() is not gradient:
            self._gradient, self._version = weakref.ref(gradient), version
            return Change.REPLACED
        if version == self._version:
            return Change.NONE
        self._version = version
        return Change.WRITTEN


class GradientState:
    """What is known of the gradients of one optimizer, and its actions since the last step."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.history = LoopHistory()
        self.looks = 0
        """How often its gradients were measured to see whether something had zeroed them."""
        self.is_scaled: bool | None = False
        self.position: tuple[int, int, int] | None = None
        """The id of the loader at the last backward pass, and how many epochs and batches it had begun."""
        self._since_new = 0  # steps since one with a pattern that none before had
        self._events: list[tuple[ObservedAction, int]] | None = []
        self._step: ObservedAction | None = None  # the step that runs now
        self._before_step: list[tuple[ObservedAction, int]] | None = []
        self._samples: list[_Sample] = []
        self._choose(optimizer)
        self.condition = Condition.EMPTY if self._is_empty() else Condition.UNKNOWN
        self._is_of_torch = type(optimizer).__module__.startswith("torch.optim")

    def is_among(self, parameters: set[int]) -> bool:
        """Whether it follows one of these parameters, given by their ids."""
        return any(id(sample.parameter) in parameters for sample in self._samples)

    @property
    def gradient(self) -> Tensor | None:
        return next((sample.gradient for sample in self._samples if sample.gradient is not None), None)

    def add(self, event: ObservedAction, times: int = 1) -> None:
        """Record an action since the last step."""
        events = self._events
        if events is None:
            return
        if events and events[-1][0] == event:
            events[-1] = (event, events[-1][1] + times)
        elif len(events) < _MOST_EVENTS:
            events.append((event, times))
        else:
            self._events = None

    @property
    def settled(self) -> bool:
        """Whether its steps have long been like others before."""
        return self._since_new >= _SETTLED

    def lose_track(self) -> None:
        """What happens until the end of some step to come is not told."""
        self._events, self.condition, self.position, self.is_scaled = None, Condition.UNKNOWN, None, None

    def look(self) -> None:
        """Update the condition after changes that no hook saw."""
        changes = {sample.look() for sample in self._samples}
        if changes <= {Change.NONE}:
            return
        if changes == {Change.GONE} or (Change.GONE in changes and self._is_empty()):
            self.cleared(NOWHERE)
        else:
            self.condition, self.is_scaled = Condition.UNKNOWN, None

    def cleared(self, place: Place) -> None:
        """Record that the gradients, which were just looked at, are gone or zero."""
        self.add(ObservedAction(Action.CLEAR, place, self.condition))
        self.condition = Condition.EMPTY
        self.is_scaled = False

    def may_be_cleared(self, place: Place) -> None:
        """Update after a `zero_grad` that may cover all, some or none of the gradients."""
        changes = {sample.look() for sample in self._samples}
        if self._is_empty() or changes == {Change.WRITTEN}:
            self.cleared(place)
        elif changes & {Change.GONE, Change.WRITTEN, Change.REPLACED}:
            self.condition = Condition.UNKNOWN

    def written(self) -> None:
        """Update after scaling or clipping."""
        for sample in self._samples:
            sample.look()

    def computed(self, before: list[ObservedAction]) -> bool:
        """Update after a backward pass; returns whether it reached the gradients. `before` are the actions to record for it.

        With `create_graph`, a backward pass replaces the gradients that it adds to.
        """
        if Change.NONE in (changes := {sample.look() for sample in self._samples}) and len(changes) == 1:
            return False
        for event in before:
            self.add(event)
        if Change.GONE in changes:
            self.condition = Condition.UNKNOWN
        elif self.condition is Condition.EMPTY:
            self.condition = Condition.FRESH
        elif self.condition is Condition.USED:
            self.condition = Condition.STALE
        return True

    def steps(self, step: ObservedAction) -> None:
        """A step begins; with a closure, its gradients are not computed yet."""
        self._step = step
        self._before_step, self._events = self._events, []

    def stepped(self) -> None:
        """The step has ended."""
        step, self._step = self._step, None
        if step is None:
            return
        changes = {sample.look() for sample in self._samples}
        inside, self._events = self._events, self._before_step
        found = step.gradients
        if inside is None or any(event.action is Action.BACKWARD for event, _ in inside):
            found, after = self.condition, []
            for event, times in inside or ():
                self.add(event, times)
            if inside is None or inside[-1][0].action is Action.CLEAR:
                found = Condition.UNKNOWN  # the optimizer may have stepped before the clearing
        else:
            after = inside
            if found is Condition.EMPTY and not self._is_empty() and changes != {Change.NONE}:
                found = Condition.UNKNOWN  # a hook set gradients
        self._close(step._replace(gradients=found))
        self._events = after
        optimizer = self.optimizer()
        if self._is_empty() and optimizer is not None:
            self._choose(optimizer)
            self.condition = Condition.EMPTY if self._is_empty() else Condition.UNKNOWN
        elif after:
            pass  # the optimizer has cleared the gradients itself
        elif changes <= {Change.NONE} or (self._is_of_torch and changes <= {Change.NONE, Change.WRITTEN}):
            self.condition = Condition.EMPTY if found is Condition.EMPTY else Condition.USED
        else:
            self.condition = Condition.UNKNOWN

    def skipped(self, place: Place) -> None:
        """A gradient scaler has left out the step."""
        for sample in self._samples:
            sample.look()
        self._close(ObservedAction(Action.SKIP, place, self.condition, by_scaler=True))
        self.condition = Condition.EMPTY if self._is_empty() else Condition.UNKNOWN

    def _close(self, last: ObservedAction) -> None:
        history = self.history
        self.add(last)
        pattern = None if self._events is None else tuple(self._events)
        self._since_new = self._since_new + 1 if pattern is None or pattern in history.patterns else 0
        if pattern is not None and (pattern in history.patterns or len(history.patterns) < _MOST_PATTERNS):
            history.patterns[pattern] += 1
            if history.first is None:
                history.first = pattern
        elif history.first is None:
            history.first = ()
        self._events = []

    def report(self) -> LoopHistory:
        self.history.pending = tuple(self._events or ())
        return self.history

    def _is_empty(self) -> bool:
        return all(sample.gradient is None for sample in self._samples)

    def _choose(self, optimizer: torch.optim.Optimizer) -> None:
        """Follow the first and the last parameter that has a gradient, or may get one."""
        groups: list[dict[str, Any]] = optimizer.param_groups
        first = _first(parameter for group in groups for parameter in group["params"])
        last = _first(parameter for group in reversed(groups) for parameter in reversed(group["params"]))
        chosen = [parameter for parameter in (first, last) if parameter is not None]
        self._samples = [_Sample(parameter) for parameter in chosen[: 1 + (first is not last)]]


def _first(parameters: Any) -> Tensor | None:
    able = None
    for parameter in parameters:
        if parameter.grad is not None:
            return parameter  # type: ignore[no-any-return]
        if able is None and parameter.requires_grad:
            able = parameter
    return able
