"""Measures gradients that were computed in float16, on audited steps alone."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import Underflow
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.observers.observer import Observer

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_RULE = "TA214"
_SAMPLE = 4096  # elements of a parameter
_MOST = 64  # parameters of a step
_SMALLEST = torch.finfo(torch.float16).smallest_normal


class Underflows(Observer):
    """Watches the first backward pass of a step, before anything clips or unscales what it has computed."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = _RULE in session.settings.rules
        self._found: Underflow | None = None

    def begin(self, window: "Window") -> None:
        self._found = None

    def after_backward(self, loss: Tensor) -> None:
        window = self.session.window
        if not self._wanted or self._found is not None or window.step is None:
            return
        parameters = _parameters_in_half(window)
        gradients = [local(parameter.grad) for parameter in parameters if parameter.grad is not None]
        measured = [gradient for gradient in gradients if measurable(gradient)]
        if not measured or len({gradient.device for gradient in measured}) > 1:
            return
        self._measure(measured, window)

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        found, self._found = self._found, None
        if found is not None and window.step is not None:
            found.by_scaler = self.session.optimizers.by_scaler
            window.step.underflows.append(found)

    @torch.no_grad()
    def _measure(self, gradients: list[Tensor], window: "Window") -> None:
        values = torch.cat([_sample(gradient).float() for gradient in gradients])
        sizes = values.abs()
        counts = torch.stack([(sizes == 0).sum(), (sizes < _SMALLEST).sum()]).float()
        found = self._found = Underflow(self.session.backwards.place, False, values.numel())

        def deliver(numbers: list[float]) -> None:
            zeros, small = numbers
            others = found.elements - zeros
            found.zeros = zeros / found.elements
            found.tiny = (small - zeros) / others if others else None

        window.readings.vector(counts, deliver)


def _parameters_in_half(window: "Window") -> list[Tensor]:
    """The parameters in float32 of layers that gave results in float16, as they do under autocast."""
    assert window.step is not None
    found: dict[int, Tensor] = {}
    for forward in window.step.training_forwards:
        for call in forward.calls:
            if any(output.dtype is torch.float16 for output in call.outputs):
                own = (one for one in call.module._parameters.values() if one is not None)
                found |= {id(one): one for one in own if one.dtype is torch.float32}
    return list(found.values())[:_MOST]


def _sample(values: Tensor) -> Tensor:
    """An even sample of the elements of a gradient."""
    flat = values.reshape(-1)
    return flat[:: max(1, flat.numel() // _SAMPLE)]
