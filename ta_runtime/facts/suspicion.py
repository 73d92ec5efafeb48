"""What a check says of a place: a pitfall, or that it looked there and found none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What a check says: a pitfall at a place.

    `message` is lower case, present tense, without a full stop, and free of numbers that change from step to step:
    those are `evidence`, each with its unit where it is not plain. `subject` is the name of a layer or parameter, where
    a place has several, and `variant` a word for each of several pitfalls that a rule sees at one place. One suspicion
    of a rule with one `identity` is one incident, however often it comes back.
    `is_note` makes this one a note, whatever the page says, if it does little harm.
    `cause` names a chain, such as `non-finite`, in which only the first cause is a finding: the one of the earliest
    step, and in a step the one with the least `order` (0 input, 1 activation, 2 loss, 3 gradient, 4 parameter).
    """

    place: "Place"
    message: str
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    subject: str = ""
    cause: str = ""
    order: int = 0
    related: tuple[tuple["Place", str], ...] = ()
    variant: str = ""
    is_note: bool = False

    @property
    def identity(self) -> "tuple[Place, str, str]":
        return self.place, self.subject, self.variant


@dataclass(frozen=True, slots=True)
class Refutation:
    """What a check says where it looked closely and the pitfall is not there: what the source suspects here is refuted.

    `evidence` are the numbers that say so, as in a `Suspicion`; those of the last look are kept. A suspicion at the same
    place, before or after, outweighs it. `related` are further places that a reader of the source may have suspected
    for the same thing. Say it only of what was measured: where nothing could be, a check stays silent.
    `of_data` says that another batch, or later weights, may well show the pitfall: one look then refutes nothing, and
    `incidents` wants many. What the code alone decides, such as shapes, devices, classes and orders, one look settles.
    """

    place: "Place"
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    related: tuple["Place", ...] = ()
    of_data: bool = False
