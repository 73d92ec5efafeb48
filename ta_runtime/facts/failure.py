"""The exception that ended a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.naming import Layer
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class FailedLookup:
    """Ids that an embedding on the CPU has raised an error for. `place` is the line that called the model."""

    place: "Place"
    layer: "Layer"
    smallest: int
    largest: int
    rows: int


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception by the name of its class and its text; `place` is the innermost line of the user's that it passed."""

    place: "Place"
    kind: str
    message: str
    lookup: FailedLookup | None = None
    """The lookup that raised it, if one did."""
