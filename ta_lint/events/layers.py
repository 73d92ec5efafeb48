"""What a dry run sees of the layers of a program that a run looks at step by step: how they are built, held and changed."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Window:
    """A layer of torch that moves a window over its input: its sizes along each axis."""

    place: Place
    kind: str
    axes: tuple[tuple[int, int, int, int], ...]
    """Kernel, stride, padding and dilation."""


@dataclass(frozen=True, slots=True)
class AlwaysDropped:
    """A call of a dropout function that leaves open in which mode, and that certainly drops values of a module in evaluation."""

    place: Place
    function: str
    within: tuple[str, ...]
    """The classes whose methods led to it."""


@dataclass(frozen=True, slots=True)
class LeafChanged:
    """An in-place change of a leaf that takes a gradient, while autograd records."""

    place: Place
    code: str
    made: Place | None


@dataclass(frozen=True, slots=True)
class PaddingFilled:
    """Where the weights of an embedding with a row of padding are drawn at random, and nothing touches that row after this."""

    place: Place
    code: str
    made: Place


@dataclass(frozen=True, slots=True)
class ParameterLost:
    """A parameter that is moved or converted as it is made: the result is an attribute of a module, and the parameter is not."""

    place: Place
    method: str
    attribute: str


@dataclass(frozen=True, slots=True)
class UsedUp:
    """Where a generator of parameters is gone over that is used up by then."""

    place: Place
    first: Place


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A layer with a bias whose output goes into norms that subtract the mean of each channel, and nowhere else."""

    place: Place
    kind: str
    norm: Place
