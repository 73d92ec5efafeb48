"""What was seen of the samples of a run: their order, what was in them, and the random numbers that made them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Pass:
    """One iterator over a loader."""

    batches: int = 0
    steps: int = 0
    """How many of its batches an optimizer step followed."""
    paired: int = 0
    """How many were used in one step with a batch of another loader, as `zip` gives them."""
    ended: bool = False
    """Whether it came to its end: one that was left has not."""
    place: "Place | None" = None
    """The line that took its second batch."""
    shuffled_by: tuple[int, int] | None = None
    """Seed and epoch of the `DistributedSampler` that shuffled it, at its first batch."""
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
class Seeding:
    """A line that seeds a global generator, more than once.

    `starts` has, for the first step after it, the number of the optimizer that stepped, and hashes of the generator's
    state, as the seed left it and as the step found it. Lines that seed while gradients are off are left out.
    """

    generator: str
    place: "Place"
    calls: int = 0
    values: set[str] = field(default_factory=set)
    """The seeds, of many the first."""
    starts: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Seeds:
    """How the run was seeded."""

    seedings: list[Seeding] = field(default_factory=list)
    seed: int | None = None
    """What torch's generator had been seeded with when the first step was taken; None if nobody had seeded it."""
    started: "Place | None" = None
    """The outermost loop around the first step, or what led to it where there is no loop; None before that step."""
