"""The summands of losses, each with its sign, and which of them have lost their graph."""

from dataclasses import dataclass
from enum import StrEnum

from ta_lint.events.graph import End
from ta_lint.events.place import Place


class PolicyTerm(StrEnum):
    """What a summand is to the training of a policy."""

    OF_POLICY = "of a policy"
    """It weighs the log-probability of what was chosen."""
    ENTROPY = "an entropy"
    NEGATIVE_ENTROPY = "a negative entropy"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Summand:
    """One of them. Its weight counts as positive if nobody knows it."""

    place: Place
    """Where it is computed."""
    added: Place
    """The expression with which it is added to the others."""
    code: str
    """That expression."""
    sign: int
    kind: PolicyTerm = PolicyTerm.OTHER
    cut: End | None = None
    """Where it loses its graph, if it trains nothing for that alone: the loss leads to the same parameters by its other summands."""

    @property
    def raises(self) -> int:
        """1 if the loss rises with the entropy that it is, -1 if it falls, 0 of anything else."""
        return self.sign * {PolicyTerm.ENTROPY: 1, PolicyTerm.NEGATIVE_ENTROPY: -1}.get(self.kind, 0)


@dataclass(frozen=True, slots=True)
class Sum:
    """A loss that is a sum: a backward pass begins at it, or a function that nobody calls returns it. Only the source shows what it adds up."""

    place: Place
    summands: tuple[Summand, ...]


@dataclass(frozen=True, slots=True)
class MixedSum:
    """A sum over a batch that is added to a mean, both of a loss function that trains something. Only the source shows where."""

    total: Place
    mean: Place
    weight: float
    """What the sum is multiplied by before it is added."""
