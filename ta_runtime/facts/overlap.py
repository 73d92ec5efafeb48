"""Samples that are evaluated, and that training has seen."""

from dataclasses import dataclass

from ta_runtime.facts.loader import Loader


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many samples of a loader that evaluates one that trains had as well."""

    evaluated: Loader
    trained: Loader
    samples: int
    """Of the evaluation, that were compared."""
    shared: int
    by_number: bool
    """Whether both draw from one data set, and its numbers were compared; else hashes of what was handed out."""
    repeated: float
    """The share of samples that come again within one of the two by themselves."""
    whole: bool
    """Whether all samples of both were compared."""

    @property
    def share(self) -> float:
        return self.shared / self.samples
