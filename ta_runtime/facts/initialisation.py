"""How parameters got their first values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Initialisation:
    """A line of the user's code that drew the values of one parameter several times before the first optimizer step."""

    place: "Place"
    shape: tuple[int, ...]
    """Of the first of these parameters."""
    parameters: int = 0
    """How many it drew at least that often as is reported (`observers.initialisation.REPEATED`)."""
    times: int = 0
    """How often it drew one of them at most."""


@dataclass(slots=True)
class PaddingRow:
    """The row of `padding_idx` of embeddings whose weights one line drew, as a model first ran with them."""

    place: "Place"
    built_at: "Place"
    rows: int = 0
    """Those that were looked at."""
    filled: int = 0
    """How many of these were not zero, though nothing wrote to the weights after the line."""
