"""What the loaders of a run did."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ta_lint.events import loaders
from ta_runtime.facts.sampling import Indices, Pass, SampleHashes, Samples, Stream

if TYPE_CHECKING:
    from ta_runtime.facts.value import Value
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Loader(loaders.Loader):
    """A `DataLoader` that was iterated, and what was seen of its batches."""

    loader: Any = None
    """A weak reference: call it for the `DataLoader`, or None when that is gone."""
    batches: int = 0
    repeats: int = 0
    """Batches whose whole content had come before in the same epoch (confirmed by a hash of all their bytes), of several
    workers those that another worker had handed out. Batches with next to nothing in them, as of one value, never count.
    """
    once: bool = False
    """Whether its sampler draws every sample once in an epoch, several to a batch; of a stream, whether workers share it."""
    digests: list[str] = field(default_factory=list)
    """Hashes of the first batches of the first epoch, in order, to compare between ranks."""
    dataset: type | None = None
    """The class of its data set, or of what a `Subset` is of."""
    iterable: bool = False
    """Whether that is a stream, without indices."""
    passes: list[Pass] = field(default_factory=list)
    """The last of its passes, at most 16."""
    stepped_at: "Place | None" = None
    """The line that first called `optimizer.step()` after one of its batches."""
    inferred: int = 0
    """Forward passes that train nothing after one of its batches, of those that were looked at."""
    after: "list[Loader]" = field(default_factory=list)
    """The loaders whose batches were trained on last when a pass over it began: others may have trained another model."""
    last_step: int = 0
    """The optimizer steps of the run when it last handed out a batch."""
    seen: Samples = field(default_factory=Samples)
    told: SampleHashes = field(default_factory=SampleHashes)
    indices: Indices | None = None
    split_at: "Place | None" = None
    """The line that split its data set by `random_split`."""
    streams: list[Stream] = field(default_factory=list)

    @property
    def divides(self) -> bool:
        """Whether something in it may divide its samples among ranks: a stream, or a sampler that is made for it."""
        return self.iterable or "Distributed" in self.sampler

    @property
    def evaluates(self) -> bool:
        """Whether models were asked about its batches, and none was trained on them.

        A batch of training that was taken before an evaluation may be stepped on after it.
        """
        by_chance = all(each.steps <= 1 < each.batches for each in self.passes if each.steps)
        return self.inferred > 0 and not self.trained and by_chance

    @property
    def training_passes(self) -> list[Pass]:
        """The passes that are over, and that training used."""
        over = [each for each in self.passes[:-1] if self.trained or each.batches == 1]
        last = self.passes[-1:] if self.passes and self.passes[-1].ended and self.trained else []
        return [each for each in [*over, *last] if each.steps]


@dataclass(slots=True)
class Batch:
    """What a loader handed out, before the training code touched it."""

    loader: Loader
    values: "list[Value]"
