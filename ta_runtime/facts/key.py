"""The keys of a state that was loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class LoadedKeys:
    """A line that calls `load_state_dict` of a module: of the state that it loaded last, how many keys the module has, and how
    many it would have without the `prefix` of a wrapper.
    """

    place: "Place"
    fitting: int
    wrapped: int
    prefix: str
