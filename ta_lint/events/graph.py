"""Where the graphs of losses lead, where they end, and what keeps them alive."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ta_lint.events.place import Place


class Lost(StrEnum):
    """How the graph of a loss ends before it comes to a parameter."""

    DETACHED = "detached"
    """The numbers go on without it: `detach`, `item`, a new tensor of old numbers."""
    FIRST_ORDER = "first order"
    """It is a gradient, and `autograd.grad` has recorded nothing of how it was computed."""
    STEPPED = "stepped"
    """Its gradient is zero, or does not exist: rounding, `argmax`, a comparison."""
    UNRECORDED = "unrecorded"
    """Autograd does not record."""
    FORCED = "forced"
    """It is told to require a gradient, and is a leaf then, unless it has a graph anyway."""


class End(NamedTuple):
    """The expression at which the graph of a loss ends."""

    how: Lost
    place: Place
    code: str
    """Its source, on one line."""


@dataclass(slots=True)
class Backward:
    """The backward passes that one line began, as far as they were looked at. All other fields but `ends` are counts.

    Of a loss without a graph it is counted what made it so: `forced` ones are leaves that were made to require a gradient. In a run,
    those that are `cut` come in a step in which a model put out something with a graph; those that are `unrecorded` in
    one in which every model that could learn was called without recording.
    """

    place: Place
    forced: int = 0
    cut: int = 0
    unrecorded: int = 0
    recorded: int = 0
    """Losses with a graph."""
    in_half: int = 0
    """Losses of which a part was computed in float16, as autocast chose, in a program that scales none. A run measures the gradients instead."""
    through: int = 0
    """Those of thorough steps from which a gradient other than zero can come to a parameter."""
    stepped: int = 0
    """Those of which every way to a parameter leads through rounding, or another function whose gradient is zero."""
    parameters: int = 0
    """The most parameters that one loss came to."""
    ends: list[End] = field(default_factory=list)
    """Where the graphs of its losses end, one of each loss that trains nothing, and where parts of them are forced. Only the source
    says it: a run sees that there is no graph."""
    followed: int = 0
    """Backward in a step that was thorough after one that was: they would have met the graph of that one."""
    earlier: int = 0
    """The most earlier steps whose graphs one pass went into, through a model that ran in those and in its own."""
    failed: int = 0
    """The same of a pass that raised."""
    graphs: int = 0
    """Steps whose loss was marked, to see how long its graph lives."""
    alive: int = 0
    """The most graphs of the steps just before that still lived at a pass."""
    unfreed: int = 0
    """The same, counted only where no graph of an earlier step had been freed."""

    def lost(self, how: Lost) -> list[End]:
        """The ends of one kind."""
        return [end for end in self.ends if end.how is how]


@dataclass(slots=True)
class GradientReach:
    """Whether gradients come to a model that is called in training at one line, while an optimizer steps its parameters.

    `parameters` are their ids. Counts of thorough steps in which at least one of them had a gradient, `reached`, or
    none had: although the model put out something with a graph, `cut`, or as it was only called without recording,
    `unrecorded`.
    """

    place: Place
    backward: Place
    parameters: frozenset[int]
    reached: int = 0
    cut: int = 0
    unrecorded: int = 0
    starved: int = 0
    """Steps of an optimizer that holds some of them; 0 if one ever had a gradient."""


@dataclass(slots=True)
class Average:
    """A line that loops over the parameters of a model, between one step and the next, and what was there after it.

    `looks` counts the steps at which living tensors were looked through, `others` the most of those then that were computed
    from parameters by arithmetic, have the shape of one, and hold a graph. If one of them holds what another was at an
    earlier look, and so more with each step, `graphs` is their number, and `nodes` the size of the largest.
    """

    place: Place
    looks: int = 0
    others: int = 0
    graphs: int = 0
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Retained:
    """A backward pass in a loop with a step that keeps the graph by `retain_graph=True`. Only the source says so."""

    place: Place
    code: str
    loop: Place
    is_used_again: bool
    """Whether anything else goes through that graph, in this pass or in another, or perhaps does."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A call of a module that gets a state of an earlier pass with its graph, which a backward pass then goes through once more."""

    place: Place
    backward: Place


@dataclass(frozen=True, slots=True)
class Converted:
    """A tensor that becomes an array while it certainly requires a gradient, which raises."""

    place: Place
    code: str


@dataclass(frozen=True, slots=True)
class UnderAutocast:
    """A backward pass that runs while autocast chooses the precision of operations. Only the source says where that begins."""

    place: Place
    code: str
    autocast: Place
    autocast_code: str
