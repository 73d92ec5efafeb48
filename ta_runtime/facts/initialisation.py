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
