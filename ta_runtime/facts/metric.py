"""Metrics that gather what they are given until they are reset."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class TorchMetric:
    """A metric of torchmetrics that was built in this run, as passes over loaders found it."""

    built: "Place"
    kind: str
    updates: int = 0
    """What it had gathered when it was last looked at."""
    computed_at: int = 0
    """What it had gathered when it was last computed."""
    added: list[int] = field(default_factory=list)
    """What came to that from one time that it was computed to the next, since it was last reset; of many, the last 16."""
    resets: int = 0
    """How often it had gathered less than before."""
