"""Sees whether target networks ever move, on thorough steps (`facts.Step.thorough`) alone, by sums of their parameters."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from ta_runtime.facts import TargetNetwork
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.measure.scalars import Readings
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction, sources
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Forward, Run, Step
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window
    from ta_runtime.probes.places import Place

_NAMED = re.compile(r"target|tgt|_old|old_", re.IGNORECASE)
_CALLED = re.compile(r"\w*(target|tgt|_old|old_)\w*(\.\w+)*\(", re.IGNORECASE)
LATE = 1000
"""Steps after which a target is looked at though the step is not."""
_MOST = 8  # networks of a run, and parameters of each


class Targets(Observer):
    """Watches the networks that are called as targets."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = "TA541" in session.settings.rules
        self._found: Register[TargetNetwork] = Register()  # modules
        self._kept: dict[Place, TargetNetwork] = {}
        self._last: dict[Place, list[float]] = {}
        self._first: dict[Place, int] = {}

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        step = window.step
        if step is None or not step.thorough:
            self._look_again()
        elif self._wanted:
            self._look_around(step)

    def _targets(self) -> Iterator[tuple[nn.Module, TargetNetwork]]:
        for module in self._found.instances():
            if (target := self._found.get(module)) is not None:
                yield module, target

    def _look_again(self) -> None:
        """Of each target once more, late enough to tell."""
        now = self.session.step_count
        for module, target in self._targets():
            if target.steps < LATE <= now - self._first.get(target.place, now):
                self._look(target, module, self.session.window.readings)

    def _look_around(self, step: "Step") -> None:
        held = construction.held_ids()
        learning = [forward for forward in step.forwards if _is_held(forward.model.module, held)]
        for forward in step.forwards:
            target = self._target(forward, learning, held)
            if target is not None:
                self._look(target, forward.model.module, self.session.window.readings)

    def report(self, run: "Run") -> None:
        if run.over:
            readings = Readings()
            for module, target in self._targets():
                self._look(target, module, readings)
            readings.send()
            readings.deliver()
        run.targets = list(self._kept.values())

    def _target(
        self, forward: "Forward", learning: "list[Forward]", held: frozenset[int]
    ) -> TargetNetwork | None:
        """What is known of a network that is called as a target, if it is one."""
        module = forward.model.module
        if (known := self._found.get(module)) is not None:
            return known
        if len(self._found) == _MOST or any(id(parameter) in held for parameter in module.parameters()):
            return None
        has_twin = any(_are_alike(module, other.model.module) for other in learning)
        if not has_twin or _CALLED.search(sources.text(forward.place)) is None:
            return None
        built = forward.model.place
        place = built if _NAMED.search(sources.assigned_to(built)) is not None else forward.place
        target = self._kept.setdefault(place, TargetNetwork(place))
        self._found.add(module, target)
        return target

    def _look(self, target: TargetNetwork, module: nn.Module, readings: Readings) -> None:
        with torch.no_grad():
            parameters = [local(parameter.detach()) for parameter in module.parameters()][:_MOST]
            if not all(measurable(parameter) for parameter in parameters):
                return
            sums = [parameter.float().sum() for parameter in parameters]
        readings.scalars(sums, partial(self._compare, target, self.session.step_count))

    def _compare(self, target: TargetNetwork, step: int, sums: list[float]) -> None:
        before = self._last.get(target.place)
        target.looks += 1
        target.moves += before is not None and before != sums
        self._last[target.place] = sums
        target.steps = step - self._first.setdefault(target.place, step)


def _is_held(module: nn.Module, held: frozenset[int]) -> bool:
    parameters = list(module.parameters())
    return bool(parameters) and all(id(parameter) in held for parameter in parameters)


def _are_alike(one: nn.Module, other: nn.Module) -> bool:
    """Whether two networks are of one class, with parameters of the same shapes."""
    return type(one) is type(other) and [p.shape for p in one.parameters()] == [
        p.shape for p in other.parameters()
    ]
