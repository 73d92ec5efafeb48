"""What loaders hand out, pass by pass, and which of it is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ta_lint.events.place import Place

IN_ORDER = "SequentialSampler"


@dataclass(slots=True)
class LoaderPass:
    """One iterator over a loader."""

    batches: int = 0
    steps: int = 0
    """How many of its batches an optimizer step followed."""
    ended: bool = False
    """Whether it came to its end: one that was left has not."""
    begun: Place | None = None
    """The line that asked for it."""
    shuffled_by: tuple[Any, Any] | None = None
    """Seed and epoch of the `DistributedSampler` that shuffled it, at its first batch; None where there is none, or they are not known."""
    replayed: int = 0
    """Steps after its end that trained on its batches again, which were kept, and on those of no other loader."""


@dataclass(slots=True)
class Loader:
    """A `DataLoader` that was iterated; a dry run has the others as well."""

    place: Place
    """Where it was built."""
    passes: Sequence[LoaderPass] = field(default_factory=list)
    sampler: str = ""
    """The class of what draws its indices: `IN_ORDER` without shuffling. Empty where nobody knows, and of a stream, which has no indices."""
    shuffled_beside: str = ""
    """The argument with a sampler that stands beside `shuffle=True`, which the source alone has: such a loader is never built."""
    samples: int | None = None
    """How many samples its sampler says that it draws in a pass; None where not all is plain."""
    length: int | None = None
    """How many batches a pass should have, `len(loader)`; None where it is not known, and for streams, which may be wrong."""
    draws_once: bool = False
    """Whether a pass draws each sample once, and then ends; that of a stream, or with a sampler of the user's own, may not."""
    workers: int | None = None
    """Its `num_workers`; None where it is not known."""
    is_cheap: bool = False
    """Whether the source says that workers do not help: the samples are in memory, or go to a device, which workers must not touch."""
    is_measured: bool = False
    """Whether the next five were measured, as a run does."""
    trained: int = 0
    """How many of its batches were followed by an optimizer step before the next batch."""
    waited: float = 0.0
    """Seconds spent in `next()` for those."""
    stepping: float = 0.0
    """Seconds from asking for each of those to asking for the one after it, waiting included."""
    asked: int = 0
    """How often, when a batch came after a step, it was seen whether the device had finished that step."""
    idle: int = 0
    """How often of these it had: nothing was left for it to do while the batch was waited for. A CPU always has."""
    epochs: int = 0
    """How many iterators over it there were."""
    restarted: int = 0
    """The most passes in a row that were left after their first batch, which an optimizer step followed."""
    restarted_at: Place | None = None
    """The line that asked for the last of these."""
    ranks_apart: Sequence[int] = ()
    """This rank and those that took as many passes and shuffled one of them in another way."""
    seeded_by_rank: bool = False
    """Whether a dry run sees that each rank shuffles in another way, as the seed of its `DistributedSampler` is computed from the rank."""
    batch_size: int | None = None
    """None where it is not known."""
    drop_last: bool = False
    """Whether it certainly leaves out a last batch that is shorter than the others."""
    held_out: bool = False
    """Whether a dry run sees that models are asked about its batches, each of a pass, and none learns from them; if nothing goes over it, whether its
    data has the name of some that is for that."""

    @property
    def evaluates(self) -> bool:
        """Whether models are asked about its batches, and none is trained on them."""
        return self.held_out

    @property
    def left_out(self) -> int | None:
        """How many samples are not in a full batch; None where nobody knows."""
        if self.batch_size == 1:
            return 0
        return self.samples % self.batch_size if self.samples is not None and self.batch_size else None

    @property
    def training_passes(self) -> Sequence[LoaderPass]:
        """The passes that training used."""
        return [each for each in self.passes if each.steps]
