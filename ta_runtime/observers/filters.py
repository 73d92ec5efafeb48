"""Notes, after some audited steps, the norm of each filter of the convolutions that the step wrote."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ta_runtime.facts import Filters
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.probes import construction

if TYPE_CHECKING:
    from ta_runtime.observers.window import Window

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def measure(optimizer: torch.optim.Optimizer, window: "Window") -> None:
    """Of the models that ran in this step, the convolutions that this optimizer holds. Call it under `torch.no_grad()`."""
    step = window.step
    assert step is not None
    held = construction.held(optimizer)
    found: dict[torch.device, list[tuple[Filters, Tensor]]] = {}
    for model in {id(forward.model.module): forward.model for forward in step.forwards}.values():
        for path, module in model.module.named_modules():
            weight = module._parameters.get("weight") if isinstance(module, _CONVOLUTIONS) else None
            if weight is None or id(weight) not in held or not measurable(values := local(weight)):
                continue
            del held[id(weight)]
            filters = Filters(f"{path}.weight".lstrip("."), weight, model)
            norms = torch.linalg.vector_norm(values, dim=tuple(range(1, values.dim())))
            found.setdefault(values.device, []).append((filters, norms.float()))
            step.filters.append(filters)
    for measured in found.values():
        _read(measured, window)


def _read(measured: list[tuple[Filters, Tensor]], window: "Window") -> None:
    def deliver(values: list[float]) -> None:
        start = 0
        for filters, norms in measured:
            filters.norms = values[start : start + norms.numel()]
            start += norms.numel()

    window.readings.vector(torch.cat([norms for _, norms in measured]), deliver)
