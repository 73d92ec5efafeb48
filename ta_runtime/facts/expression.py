"""Functions whose value or gradient is infinite at the edge of their range, as the training code called them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Expression:
    """A call of `log`, `exp`, `sqrt`, `acos` or `asin`; a power of a half is `sqrt`.

    `of` says what the operand is where its graph tells: `softmax`, `sigmoid`, `1 - sigmoid`, `1 + exp`, `sum of exp` or
    `sum`, empty for anything else. `minimum`, `maximum` and `smallest`, the least magnitude, are of the result; of `exp`,
    they are of the operand.
    """

    place: "Place"
    function: str
    of: str
    recorded: bool
    """Whether a gradient can come back through it."""
    minimum: float | None = None
    maximum: float | None = None
    smallest: float | None = None
