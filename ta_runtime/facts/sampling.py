"""What was seen of the samples of a run: their order, what was in them, and the random numbers that made them."""

import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ta_lint.events import loaders

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Pass(loaders.LoaderPass):
    """One iterator over a loader, and what was seen of its batches."""

    paired: int = 0
    """How many were used in one step with a batch of another loader, as `zip` gives them."""
    place: "Place | None" = None
    """The line that took its second batch."""
    started_at: int = 0
    """The optimizer steps of the run when it was asked for."""
    ended_at: int = 0
    """And when it came to its end."""
    kept: bool | None = None
    """Of one that ended: whether all that was noted of its batches is still in memory; None where that cannot be told."""
    hashed: int = 0
    """How many batches the next two are of: equal numbers mean that the same batches came in the same order."""
    contents: int = 0
    labels: int = 0
    """Of the tensors of integers alone, which augmentation leaves as they are; 0 where there are none."""


@dataclass(slots=True)
class Samples:
    """What a loader handed out in its first pass, sample by sample, as far as it was looked at."""

    count: int = 0
    """In how many the next two were looked for."""
    repeated: int = 0
    """Samples whose bytes had all come before."""
    missing: int = 0
    """Samples with a value that is NaN or infinite."""
    whole: bool = True
    """Whether each batch of the pass so far was looked at."""
    ended: bool = False
    """Whether the pass came to its end."""
    labels: Counter[int] = field(default_factory=Counter)
    """How often each class came, where a batch has one integer for each sample; of more than 10,000 classes, the first."""
    alike: int = 0
    """Samples with the label of the one before."""
    last: int | None = None
    """The label of the last one."""


@dataclass(slots=True)
class SampleHashes:
    """Hashes of the samples of a loader's first pass, each of an even part of its bytes; a sample that says little has none."""

    hashes: set[int] = field(default_factory=set)
    count: int = 0
    """How many samples were hashed."""
    repeated: int = 0
    """How many of them had come before."""
    whole: bool = True
    """Whether all samples of the pass so far were."""


@dataclass(frozen=True, slots=True)
class Indices:
    """Which samples of a data set a loader can draw: those of its own, or of the data set that its `Subset`s are of."""

    dataset: "weakref.ref[Any]"
    chosen: tuple[Sequence[int], ...]
    """What each `Subset` chooses of the one below it, the outermost first."""
    length: int
    """Of the data set."""

    def numbers(self) -> set[int]:
        """The numbers of the samples in the data set."""
        if not self.chosen:
            return set(range(self.length))
        numbers = [int(number) for number in self.chosen[0]]
        for below in self.chosen[1:]:
            numbers = [int(below[number]) for number in numbers]
        return set(numbers)


@dataclass(frozen=True, slots=True)
class Stream:
    """A random generator that the workers of a loader have copies of, as the first batch of each worker used it.

    `states` are hashes of its state before and after that batch, one pair for each worker, of the passes that started
    workers. There are none where the loader has no workers.
    """

    name: str
    place: "Place"
    """The line that assigns it."""
    states: list[dict[int, tuple[int, int]]] = field(default_factory=list)


@dataclass(slots=True)
class Seeds:
    """How the run was seeded."""

    seed: int | None = None
    """What torch's generator had been seeded with when the first step was taken; None if nobody had seeded it."""
    started: "Place | None" = None
    """The outermost loop around the first step, or what led to it where there is no loop; None before that step."""
