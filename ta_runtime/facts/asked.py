"""A model that the user asks about, with what is measured of its weights then and there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from ta_runtime.facts.model import Model
from ta_runtime.naming import Parameter

if TYPE_CHECKING:
    from torch import Tensor


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter: its L2 norm, and of a convolution's weight that of each filter."""

    parameter: Parameter
    norm: float
    filters: Sequence[float] = ()

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.norm)


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model as it is, for `Auditor.audit_static` and `ta-runtime audit`. Weights without memory are left out."""

    model: Model
    weights: list[Weight]


def asked(model: Model) -> AskedModel:
    """Measure a model now; waits for its device."""
    convolutions = {
        id(module.weight) for module in model.module.modules() if isinstance(module, _CONVOLUTIONS)
    }
    weights = []
    with torch.no_grad():
        for parameter, tensor in zip(model.parameters, model.module.parameters(), strict=True):
            if nn.parameter.is_lazy(tensor) or tensor.is_meta or not tensor.is_floating_point():
                continue
            norms = _norms(tensor.detach()) if id(tensor) in convolutions else ()
            weights.append(
                Weight(parameter, float(torch.linalg.vector_norm(tensor.detach().double())), norms)
            )
    return AskedModel(model, weights)


def _norms(weight: "Tensor") -> list[float]:
    return [float(norm) for norm in torch.linalg.vector_norm(weight.double().flatten(1), dim=1)]
