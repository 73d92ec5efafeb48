"""What a run saved and loaded."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class SavedState:
    """A call of `torch.save`, or of another function that keeps weights. `path` is absolute, empty for what is no file.

    What it holds of a model that trained in this run is compared with that model, by name: `kept` tensors are as the model
    has them, `changed` are not, and `lost` are parameters that this run trained and of which nothing is kept.
    """

    place: "Place"
    path: str
    step: int
    kept: int = 0
    changed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    """The names of all tensors that it holds of the model."""


@dataclass(slots=True)
class Loaded:
    """A call of `torch.load` on a file. `unpickles` says that it ran the file's pickle without restriction.

    `unsafe` are the names outside of what `weights_only=True` accepts that the file asks for; None where it could not be
    looked at.
    """

    place: "Place"
    unpickles: bool
    own: bool
    """Whether this process has written the file itself."""
    unsafe: list[str] | None = None


@dataclass(slots=True)
class PartialLoad:
    """A call of `load_state_dict(strict=False)` from the user's code: how many keys matched, and how many did not."""

    place: "Place"
    loaded: int
    missing: int
    unexpected: int
    first: str
    """The first key that did not match, empty if all did."""
    discarded: bool
    """Whether nothing takes the result, in which the keys are."""


@dataclass(slots=True)
class CheckpointHistory:
    """All that a run saved and loaded, the first of each place."""

    saved: list[SavedState] = field(default_factory=list)
    loaded: list[Loaded] = field(default_factory=list)
    partial: list[PartialLoad] = field(default_factory=list)
    stepped_at: "Place | None" = None
    """The line that first called `step()` of an optimizer that has an `nn.Parameter`."""
