"""Counts the steps in which an optimizer writes to none of its parameters, and has those audited that look like a defect.

A write moves the version counter of a tensor, so that as soon as one has moved there is nothing left to watch: that is
after the first step, but for what writes behind autograd's back. So a count is only a sign, which an audit bears out.
"""

import weakref
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import IDLE
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_AUDITS = 4  # one to find which samples did not change, and three that compare whole parameters
_WATCHED = 16  # parameters of an optimizer that are looked at


class _Watch:
    """The first parameters of an optimizer that had a gradient, and the gradients that they had last."""

    __slots__ = ("gradients", "over", "parameters", "steps", "versions")

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = [weakref.ref(parameter) for parameter in parameters]
        self.gradients: list[weakref.ref[Tensor]] = []
        self.versions: list[int] = []
        self.steps = 0
        self.over = False


class Idleness(Observer):
    """Watches the optimizers of a session until they write."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._watches: Register[_Watch] = Register()

    @property
    def settled(self) -> bool:
        return all(watch.over for watch in self._watches.values())

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        watch = self._watches.get(optimizer) or self._begin(optimizer)
        if watch is None or watch.over:
            return
        parameters = [parameter for reference in watch.parameters if (parameter := reference()) is not None]
        gradients = [parameter.grad for parameter in parameters]
        watch.over = _may_keep(optimizer, parameters, gradients, watch.gradients)
        watch.gradients = [weakref.ref(gradient) for gradient in gradients if gradient is not None]
        watch.versions = [parameter._version for parameter in parameters]
        if window.step is not None and not watch.over:
            window.step.idle[id(optimizer)] = watch.steps

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        watch = self._watches.get(optimizer)
        if watch is None or watch.over:
            return
        versions = [tensor._version for reference in watch.parameters if (tensor := reference()) is not None]
        watch.steps += 1
        watch.over = versions != watch.versions or watch.steps == IDLE + _AUDITS
        if watch.steps >= IDLE and not watch.over:
            self.session.audit_next()

    def _begin(self, optimizer: torch.optim.Optimizer) -> _Watch | None:
        held = construction.held(optimizer).values()
        used = [parameter for parameter in held if parameter.grad is not None]
        used = [parameter for parameter in used[:_WATCHED] if not parameter.is_inference()]
        if not used:
            return None
        watch = _Watch(used)
        self._watches.add(optimizer, watch)
        return watch


def _may_keep(
    optimizer: torch.optim.Optimizer,
    parameters: list[Tensor],
    gradients: list[Tensor | None],
    last: list[weakref.ref[Tensor]],
) -> bool:
    """Whether gradients are collected over several steps, by the optimizer or by autograd, or one is missing."""
    goes_on = any(new is old() for new, old in zip(gradients, last, strict=False))
    return (
        goes_on
        or any(gradient is None for gradient in gradients)
        or any(map(optimizer.state.get, parameters))
    )
