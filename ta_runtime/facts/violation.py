"""An invariant that the run does not keep."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Violation:
    """What always held and does not hold in a step, of one call or module; of several invariants the most specific.

    `message` says what happens, `expected` is the sentence of the invariant, and `subject` names the call or module.
    `others` are places and sentences of the rest, and `step` is the one it was seen in.
    """

    place: "Place"
    message: str
    invariant: str
    expected: str
    subject: str
    step: int
    rank: int
    evidence: Mapping[str, float | int | str]
    others: tuple[tuple["Place", str], ...] = ()
