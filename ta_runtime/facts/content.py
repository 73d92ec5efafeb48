"""What parameters held when training began."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Content:
    """A parameter that a statement makes of empty memory. `changed` of its `elements` were others at the first step."""

    place: "Place"
    name: str
    elements: int
    written: bool
    """Whether anything wrote to it, as far as torch counts that: `.data` is not counted."""
    changed: int | None = None
    filled: int = 0
    """How many elements of the memory were not zero."""
