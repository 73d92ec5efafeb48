"""How often torch compiled one function."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Compilation:
    """A function that `torch.compile` compiled, by the line of its definition, or, of a library's, the line that called
    `torch.compile`.
    """

    place: "Place"
    name: str
    times: int = 0
    late: int = 0
    """How often it was compiled anew after the steps in which a run warms up."""
    gave_up: bool = False
    """Whether torch reached its limit, and runs the function as it is."""
    guard: str = ""
    """What did not hold when it was compiled anew for the last time, as torch says it."""
