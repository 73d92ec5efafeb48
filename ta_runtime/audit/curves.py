"""The numbers of a step that everybody wants to see first: loss, gradient norm, learning rate and time."""

from collections.abc import Iterator
from itertools import count

import torch

from ta_runtime.facts import Gradients
from ta_runtime.observers.window import Window
from ta_runtime.probes.registers import Register


class Curves:
    """Names these numbers by the optimizer that they are of."""

    def __init__(self) -> None:
        self._optimizers: Register[int] = Register()

    def of(self, window: Window) -> Iterator[tuple[str, float | None]]:
        """Those of a step whose numbers are all here, by key; None for what is not known."""
        yield "step/seconds", window.seconds
        yield "step/waited_seconds", window.waited
        for gradients in window.gradients:
            number = self.number(gradients.optimizer.optimizer)
            suffix = f"/{number}" if number else ""
            yield f"step/loss{suffix}", gradients.loss
            yield f"step/gradient_norm{suffix}", _norm(gradients)
            yield f"step/learning_rate{suffix}", gradients.learning_rate

    def number(self, optimizer: torch.optim.Optimizer) -> int:
        """0 for the first, for others the lowest that is free."""
        if (number := self._optimizers.get(optimizer)) is None:
            taken = {self._optimizers.get(other) for other in self._optimizers.instances()}
            number = next(number for number in count() if number not in taken)
            self._optimizers.add(optimizer, number)
        return number


def _norm(gradients: Gradients) -> float | None:
    """Before clipping, unless only a part of the gradients was clipped: that part is then smaller than what is left."""
    clipped, total = gradients.before_clipping, gradients.total
    if clipped is None or (total is not None and clipped < total):
        return total
    return clipped
