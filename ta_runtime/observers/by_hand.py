"""Sees a training that updates its parameters by hand, without an optimizer: each backward pass is then a step.

It listens until an optimizer steps. That parameters change between two backward passes shows that this is a training, and not
a look at gradients: a few numbers of each are kept from the first pass and compared at the second, the fourth and so on.
"""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.measure.kinds import local, measurable
from ta_runtime.measure.scalars import Readings
from ta_runtime.observers.backwards import readable
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.walks import leaves
from ta_runtime.probes import construction
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import here

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_KEPT, _NUMBERS = 64, 64
"""Parameters of which numbers are kept, and how many of each."""
_PATIENCE = 32
"""Backward passes without a step after which an optimizer that was built is no longer waited for."""
_MOST = 1024
"""Backward passes after which a program that has changed no parameter is not a training."""


class UpdateByHand(torch.optim.Optimizer):
    """Stands in facts for the optimizer that is not there. It never steps, has no settings and keeps no parameter alive."""

    def __init__(self) -> None:  # not that of torch, which is told of as an optimizer that was built
        self.defaults, self.state = {}, {}  # type: ignore[assignment]
        self.held: list[weakref.ref[Tensor]] = []

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return [{"params": [tensor for reference in self.held if (tensor := reference()) is not None]}]


class ByHand(Observer):
    """Watches backward passes until an optimizer steps."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._optimizer = UpdateByHand()
        self._trains = False
        self._passes = 0
        self._steps = 0  # that were counted here
        self._before: list[tuple[weakref.ref[Tensor], Tensor]] = []
        self._readings: Readings | None = None

    def attach(self) -> None:
        if self.session.watches(self._optimizer):
            self._listen("backward", self._backward)
            self._listen("differentiate", self._differentiate)

    def detach(self) -> None:
        super().detach()
        self._before, self._readings = [], None

    def _backward(self, call: Call) -> End | None:
        loss = call.given(0, "tensors")
        if in_backward() or not isinstance(loss, Tensor) or not self._listens:
            return None
        if not self._trains and self._is_due:
            self._decide(list(leaves(loss)))
        if self._trains and self.session.looks_at(self.session.window):
            self._hold(list(leaves(loss)))
        return self._after_backward

    def _after_backward(self, call: Call) -> None:
        if not call.raised:
            self._over(self.session.backwards.place, None)

    def _differentiate(self, call: Call) -> End | None:
        """`torch.autograd.grad`, whose gradients are in no parameter. One that makes a graph is a part of a loss."""
        inputs = call.given(1, "inputs")
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        differentiable = bool(call.given(4, "create_graph")) or bool(call.given(3, "retain_graph"))
        if in_backward() or differentiable or not all(each.is_leaf for each in inputs) or not self._listens:
            return None
        if not self._trains and self._is_due:
            self._decide(inputs)
        if self._trains and self.session.looks_at(self.session.window):
            self._optimizer.held = [weakref.ref(each) for each in inputs]
        return self._after_differentiation

    def _after_differentiation(self, call: Call) -> None:
        if call.raised:
            return
        loss, window = call.given(0, "outputs"), self.session.window
        if self.session.looks_at(window) and isinstance(loss, Tensor) and readable(loss):
            window.losses.append(local(loss.detach()))
            window.backwards += 1
        self._over(here(), list(call.result))

    @property
    def _listens(self) -> bool:
        """Whether no optimizer has stepped; otherwise nothing is listened to from here on."""
        if self.session.step_count == self._steps and self._passes < _MOST:
            return True
        self.detach()
        return False

    def _over(self, place: Any, gradients: Sequence[Tensor | None] | None) -> None:
        """A backward pass is over, and with it the step."""
        if not self._trains:
            self._passes += 1
            return
        self.session.stepped_by_hand(self._optimizer, place, gradients)
        self._steps = self.session.step_count

    def _hold(self, found: list[Tensor]) -> None:
        """Beside what a gradient comes to, also the rest of the models that it is of."""
        ids = set(map(id, found))
        held = {id(tensor): tensor for tensor in found}
        for model in self.session.names.models:
            own = [parameter for parameter in model.parameters() if parameter.requires_grad]
            if not ids.isdisjoint(map(id, own)):
                held |= {id(parameter): parameter for parameter in own}
        self._optimizer.held = [weakref.ref(tensor) for tensor in held.values()]

    # -- whether it is a training -----------------------------------------------------------------------------

    @property
    def _is_due(self) -> bool:
        waits = construction.has_optimizer() and self._passes < _PATIENCE
        return not waits and (not self._before or self._passes & (self._passes - 1) == 0)

    @torch.no_grad()
    def _decide(self, found: list[Tensor]) -> None:
        """Keep numbers of parameters, or compare those that were kept."""
        found = [each for each in found if isinstance(each, nn.Parameter)] or found
        found = [each for each in found if measurable(local(each))][:_KEPT]
        if not self._before:
            self._before = [(weakref.ref(each), _numbers(each).clone()) for each in found]
            return
        if self._readings is None:
            self._compare(found)
        if self._readings is not None and self._readings.arrived:
            self._readings.deliver()
            self._readings = None

    def _compare(self, found: list[Tensor]) -> None:
        same = [(tensor, kept) for reference, kept in self._before if (tensor := reference()) is not None]
        if not same and len(found) == len(self._before) > 1:  # each update makes new tensors
            same = [(tensor, kept) for tensor, (_, kept) in zip(found, self._before, strict=True)]
        changes = [
            torch.count_nonzero(now != kept).float()
            for tensor, kept in same
            if (now := _numbers(tensor)).shape == kept.shape and now.device == kept.device
        ]

        def deliver(counts: list[float]) -> None:
            if any(counts):
                self._trains, self._before = True, []
                self.session.trains_by_hand(self._passes)
                self._steps = self.session.step_count

        if changes:
            self._readings = Readings()
            self._readings.norms((), deliver, beside=changes)


def _numbers(tensor: Tensor) -> Tensor:
    """Some of its numbers, from all over it."""
    flat = local(tensor.detach()).reshape(-1)
    return flat[:: max(1, flat.numel() // _NUMBERS)]
