"""The exception that ended a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.places import Place


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception by the name of its class and its text; `place` is the innermost line of the user's that it passed."""

    place: "Place"
    kind: str
    message: str
