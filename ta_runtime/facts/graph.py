"""What was seen of the autograd graphs of a run: where its backward passes went, and what keeps graphs alive."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Backward:
    """The backward passes that one line began, as far as they were looked at. All fields but the place are counts.

    Of a loss without a graph it is counted what made it so: `forced` ones are leaves that were made to require a gradient;
    those that are `cut` come in a step in which a model put out something with a graph; those that are `unrecorded` in
    one in which every model that could learn was called without recording.
    """

    place: "Place"
    forced: int = 0
    cut: int = 0
    unrecorded: int = 0
    recorded: int = 0
    """Losses with a graph."""
    through: int = 0
    """Those of thorough steps from which a gradient other than zero can come to a parameter."""
    stepped: int = 0
    """Those of which every way to a parameter leads through rounding, or another function whose gradient is zero."""
    parameters: int = 0
    """The most parameters that one loss came to."""
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


@dataclass(slots=True)
class Reach:
    """Whether gradients come to a model that is called in training at one line, while an optimizer steps its parameters.

    `parameters` are their ids. Counts of thorough steps in which at least one of them had a gradient, `reached`, or
    none had: although the model put out something with a graph, `cut`, or as it was only called without recording,
    `unrecorded`.
    """

    place: "Place"
    backward: "Place"
    parameters: frozenset[int]
    reached: int = 0
    cut: int = 0
    unrecorded: int = 0


@dataclass(slots=True)
class Average:
    """A line that loops over the parameters of a model, between one step and the next, and what was there after it.

    `looks` counts the steps at which living tensors were looked through, `others` the most of those then that were computed
    from parameters by arithmetic, have the shape of one, and hold a graph. If one of them holds what another was at an
    earlier look, and so more with each step, `graphs` is their number, and `nodes` the size of the largest.
    """

    place: "Place"
    looks: int = 0
    others: int = 0
    graphs: int = 0
    nodes: int = 0
