"""Networks that are called as targets, beside one of the same shape that learns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class TargetNetwork:
    """A network that no optimizer holds, and whose name at a call says that it is a target or an old policy.

    `place` built it, or calls it where that is not known. `looks` are the steps after which sums of its parameters were read, `moves` how many of them differ from those
    before, and `steps` is how many optimizer steps lie between the first and the last.
    """

    place: "Place"
    looks: int = 0
    moves: int = 0
    steps: int = 0
