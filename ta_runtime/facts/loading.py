"""Where states of models were loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Loading:
    """A line that calls `load_state_dict` of a module. `tensors` are those of the state that it loaded last."""

    place: "Place"
    times: int = 0
    onto_itself: int = 0
    """How often each tensor of a state, taken since the last optimizer step, lay in the very memory that it was loaded to."""
    tensors: int = 0
