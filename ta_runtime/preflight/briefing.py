"""What a preflight has seen, in plain values, for the terminal and for the page."""

from dataclasses import dataclass, field

from ta_runtime.preflight.figures import Figures
from ta_runtime.preflight.peeking import PeekedLoader
from ta_runtime.preflight.reading import Reading


@dataclass(slots=True)
class Entrance:
    """A call of a model, and the tensors that went in."""

    model: str
    path: str
    line: int
    inputs: list[Figures] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    """Its token ids as text, of the first call of its line."""


@dataclass(slots=True)
class Aim:
    """A call of a loss: its targets, and what came out."""

    function: str
    path: str
    line: int
    target: Figures
    value: float | None = None
    chance: float | None = None
    """What a guess that knows nothing would have, where that is known."""
    ignored: float | None = None
    """The share of targets that count for nothing."""


@dataclass(slots=True)
class Briefing:
    """All that there is to show."""

    script: str
    until_first_step: float = 0.0
    """Seconds from the start of the script to its first step."""
    seconds: float = 0.0
    """That the preflight took."""
    parameters: int = 0
    """Elements that the optimizers train."""
    loaders: list[PeekedLoader] = field(default_factory=list)
    entrances: list[Entrance] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """What each probe says, as sentences."""
    not_tried: list[str] = field(default_factory=list)
    """What could not be looked at, and why, as sentences."""
