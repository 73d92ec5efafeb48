"""Weights that `torch.nn.utils.spectral_norm` was to normalise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Normalisation:
    """A line that asked for spectral norm, of whose weights some were used before their norm had ever been estimated."""

    place: "Place"
    used_at: "Place"
    """The line that called the model."""
    layers: int = 0
    """How many such weights of this line were used."""
    passes: int = 0
    norm: float | None = None
    """The spectral norm of the first of these weights as it was used, from below; None where it was not measured."""
