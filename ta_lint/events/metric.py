"""What gathers numbers of batches until somebody resets it."""

from dataclasses import dataclass, field

from ta_lint.events.place import Place


@dataclass(slots=True)
class TorchMetric:
    """A metric of torchmetrics that was built, as passes over loaders found it."""

    built: Place
    kind: str
    name: str = ""
    """What it is assigned to, such as `self.accuracy`."""
    updates: int = 0
    """What it had gathered when it was last looked at."""
    computed_at: int = 0
    """What it had gathered when it was last computed."""
    added: list[int] = field(default_factory=list)
    """What came to that from one time that it was computed to the next, since it was last reset; of many, the last 16."""
    resets: int = 0
    """How often it had gathered less than before."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """A sum, or with `is_list` a list, that gets numbers of each batch and goes on from epoch to epoch, and is used in each. A run does not
    look for these.
    """

    used: Place
    """Where it is divided by the size of an epoch, or gone over,"""
    code: str
    """what it is there,"""
    added: Place | None
    """and where numbers are added."""
    is_list: bool = False
