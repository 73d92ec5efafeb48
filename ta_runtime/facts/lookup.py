"""The lookup that ended a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.facts.model import Layer
    from ta_runtime.places import Place


@dataclass(slots=True)
class FailedLookup:
    """Ids that an embedding on the CPU has raised an error for. `place` is the line that called the model."""

    place: "Place"
    layer: "Layer"
    smallest: int
    largest: int
    rows: int
