"""Notes, after an audited step, the norms of what the step wrote: parameters, and running statistics of batch norms."""

from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase

from ta_runtime.facts import Optimizer, State
from ta_runtime.measure.kinds import local, measurable

if TYPE_CHECKING:
    from ta_runtime.observers.window import Window


def measure(optimizer: Optimizer, window: "Window", known: dict[int, State]) -> None:
    """What this optimizer holds and, once a step, the running statistics of the layers that ran.

    `known` has what is measured already, by the ids of the tensors. Other buffers are left out: masks full of
    infinities are what they should be. Call it under `torch.no_grad()`.
    """
    step = window.step
    assert step is not None
    noted = window.noted
    held = [tensor for group in optimizer.groups for tensor in group["params"]]
    ran = {id(call.module): call.module for forward in step.forwards for call in forward.calls}
    norms = [module for module in ran.values() if isinstance(module, _NormBase)]
    buffers = [buffer for module in norms for buffer in module.buffers(recurse=False)]
    states: list[State] = []
    new: list[State] = []
    measured: list[Tensor] = []
    for tensor in (*held, *buffers):
        if id(tensor) in noted:
            continue
        state = known.get(id(tensor))
        if state is None:
            if not measurable(values := local(tensor)):
                continue
            state = State(tensor, optimizer)
            new.append(state)
            measured.append(values)
        noted.add(id(tensor))
        states.append(state)
    step.states += states

    def deliver(norms: list[float]) -> None:
        for state, norm in zip(new, norms, strict=True):
            state.norm = norm

    if new:
        window.readings.bulk(measured, deliver)
