"""Notes, after an audited step, the norms of what the step wrote: parameters, and running statistics of batch norms."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase

from ta_runtime.facts import State
from ta_runtime.readings import local, measurable

if TYPE_CHECKING:
    from ta_runtime.window import Window


def measure(optimizer: torch.optim.Optimizer, window: "Window") -> None:
    """Of the models that ran in this step, what this optimizer holds and, once a step, the running statistics.

    Other buffers are left out: masks full of infinities are what they should be. Call it under `torch.no_grad()`.
    """
    step = window.step
    assert step is not None
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    known = {id(state.tensor) for state in step.states}
    states: list[State] = []
    measured: list[Tensor] = []
    for model in {id(forward.model.module): forward.model for forward in step.forwards}.values():
        for path, module in model.module.named_modules():
            found = [(name, tensor, False) for name, tensor in module._parameters.items() if id(tensor) in held]
            if isinstance(module, _NormBase):
                found += [(name, buffer, True) for name, buffer in module.named_buffers(recurse=False)]
            for name, tensor, is_buffer in found:
                if tensor is None or id(tensor) in known or not measurable(values := local(tensor)):
                    continue
                known.add(id(tensor))
                full = f"{path}.{name}" if path else name
                states.append(State(full, tensor, model, is_buffer))
                measured.append(values)
    if not states:
        return

    def deliver(norms: list[float]) -> None:
        for state, norm in zip(states, norms, strict=True):
            state.norm = norm

    window.readings.bulk(measured, deliver)
    step.states += states
