"""What a check says of a place: a pitfall, that it looked there and found none, or why it could not look."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ta_lint.events.place import Place


class Sight(StrEnum):
    """What a refutation rests on and a finding can hide, as the reason why it then refutes nothing."""

    LAYERS = "layers of the model are not registered"
    GRADIENTS = "the loss reaches no parameter"


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
    `hides` is what other checks cannot see as long as this pitfall is there: refutations that rest on it do not stand.
    `shows_elsewhere` says that the place is where the pitfall shows, such as the loss, and its cause may be at any line
    that takes part in a step: the only suspicion of the rule in that code is then of the same bug.
    """

    place: Place
    message: str
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    subject: str = ""
    cause: str = ""
    order: int = 0
    related: tuple[tuple[Place, str], ...] = ()
    variant: str = ""
    is_note: bool = False
    hides: Sight | None = None
    shows_elsewhere: bool = False
    needs: tuple[Place, ...] = ()
    """Other lines that must run for it, if something is to run this one."""

    @property
    def identity(self) -> tuple[Place, str, str]:
        return self.place, self.subject, self.variant


@dataclass(frozen=True, slots=True)
class Refutation:
    """What a check says where the pitfall could have shown, it looked, and the pitfall is not there.

    What the source suspects here is then refuted, so say it only if the same look would have confirmed the pitfall; else
    say `Unobserved`. `because` is what was looked at, in a few words with its number: "24 clippings, all of unscaled
    gradients". `evidence` are the numbers, as in a `Suspicion`; those of the last look are kept. A suspicion at the same
    place, before or after, outweighs it. `related` are further places that a reader of the source may have suspected
    for the same thing. `rests_on` is what must be in sight for it: a finding that hides it leaves the place unobserved.
    `of_data` says that another batch, or later weights, may well show the pitfall: one look then refutes nothing, and
    `incidents` wants many. What the code alone decides, such as shapes, devices, classes and orders, one look settles.
    """

    place: Place
    because: str
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    related: tuple[Place, ...] = ()
    of_data: bool = False
    rests_on: Sight | None = None


@dataclass(frozen=True, slots=True)
class Unobserved:
    """What a check says where the pitfall could not show in this run, and why: "the scaler is disabled".

    A refutation of the place, by another look, outweighs it.
    """

    place: Place
    because: str
    related: tuple[Place, ...] = ()


Said = Suspicion | Refutation | Unobserved
