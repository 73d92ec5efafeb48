"""What the ranks of a distributed run tell each other of themselves, as plain values that can be compared and sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from ta_runtime.measure.digests import Digest
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that `torch.save` wrote: its full name, the machine, and the line that did."""

    path: str
    host: str
    place: "Place"


@dataclass(frozen=True, slots=True)
class Collective:
    """A call of a collective, the `number`-th of its group as this rank counts, at a place.

    `alike` are its arguments that must be equal on all ranks, with their names. `sent` and `received` are the elements
    for and from each member of the group, of an all-to-all: what one sends another receives. `member` is this rank's
    number in the group. `early` says that the group was there before the session.
    """

    group: str
    number: int
    name: str
    place: "Place"
    alike: tuple[tuple[str, int | str | tuple[int, ...]], ...]
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    member: int = 0
    early: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A collective of this rank and the same one of another, and what of the two does not fit: a name, and both values."""

    own: Collective
    rank: int
    other_rank: int
    what: str
    value: int | str | tuple[int, ...]
    other_value: int | str | tuple[int, ...]


@dataclass(slots=True)
class Wrapper:
    """A `DistributedDataParallel` during an audited step, and the line that made it.

    `reduced` are the elements that the training code itself gave to `all_reduce` before the step.
    """

    module: "nn.Module"
    place: "Place"
    reduced: int = 0


@dataclass(frozen=True, slots=True)
class Replica:
    """A parameter at an optimizer step: its digests before and after, and those of its gradient.

    `wrapped` is the number of the `DistributedDataParallel` that holds it, None without one. `computed` is the gradient
    as the last backward pass left it, `reduced` as an `all_reduce` left it, if one was given it, and `used` as the step
    used it, reduced and clipped by whatever ran in between.
    """

    wrapped: int | None
    after: "Digest"
    before: "Digest | None" = None
    computed: "Digest | None" = None
    reduced: "Digest | None" = None
    used: "Digest | None" = None


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The parameters of one rank after `step` optimizer steps, by name. `communicates`: whether it ran collectives itself."""

    step: int
    replicas: Mapping[str, Replica]
    groups: Mapping[int, tuple[int, ...]]
    """The ranks that share each wrapped model."""
    communicates: bool = False

    @property
    def unwrapped(self) -> Mapping[str, Replica]:
        return {name: replica for name, replica in self.replicas.items() if replica.wrapped is None}


@dataclass(frozen=True, slots=True)
class DivergedReplicas:
    """Parameters that ranks should share and do not, of one model: how many, of how many, the first, and by how much.

    `apart` is the largest difference of a few elements, relative to the largest of them. The place is the line that wraps
    the model; of what nobody wraps it is the line that steps, and `layer` the one that made the first of them.
    """

    place: "Place"
    name: str
    count: int
    total: int
    apart: float
    ranks: tuple[int, ...]
    layer: "Place | None" = None


@dataclass(frozen=True, slots=True)
class Read:
    """A number that was read from a DTensor: its placements, and over how many ranks a part of it is spread."""

    place: "Place"
    placements: str
    parts: int
    value: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """The samples of the first pass over a loader: how many, their hashes, and whether these are of all there were."""

    count: int
    hashes: frozenset[int]
    whole: bool


@dataclass(frozen=True, slots=True)
class DataShare:
    """The samples of a data set of `length` that a loader draws from, a bit for each, and what it does with them."""

    length: int
    numbers: int
    trains: bool
    evaluates: bool


@dataclass(slots=True)
class Told:
    """What one rank tells the others at the end. The lists of loaders are in order of first use."""

    batches: list[list[str]] = field(default_factory=list)
    """Of each loader the hashes of its first batches."""
    orders: list[list[tuple[int, int] | None]] = field(default_factory=list)
    """Of each loader the seed and the epoch of the `DistributedSampler` that shuffled each pass."""
    samples: list[Drawn] = field(default_factory=list)
    """Of each loader its first samples."""
    parts: list[DataShare | None] = field(default_factory=list)
    """Of each loader what it draws from, where that is a part of a data set."""
    saved: list[Saved] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    snapshot: ReplicaState | None = None
    """Its parameters, as they are at the end."""
