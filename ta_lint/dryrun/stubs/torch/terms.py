"""The terms that a tensor is the sum of, each with its sign and its own facts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ta_lint.dryrun.values import Place

MOST_TERMS = 16
"""Terms of a sum: one with more is no longer taken apart."""


@dataclass(frozen=True, slots=True)
class Term:
    """One of them, as it was before it was added."""

    place: Place
    """Where it was computed."""
    facts: Any = field(compare=False)
    """What is known of it, a `tensors.Facts`: two sums of the same places are one to the memory of calls."""
    sign: int = 1
    factor: float | None = 1.0
    """The number that it was multiplied with, without its sign; None if nobody knows it, or several numbers have done so."""
    added: Place | None = None
    """The summand that it is, or is in, where it was first added to something."""
    divided: bool = False
    """Whether a number that nobody knows has divided it, or may have."""

    def times(self, number: float | None, *, divided: bool = False) -> "Term":
        """It in a multiple of the sum."""
        if number is None:
            return replace(self, factor=None, divided=self.divided or divided)
        known = None if self.factor is None else self.factor * abs(number)
        return replace(self, sign=-self.sign if number < 0 else self.sign, factor=known)


Terms = tuple[Term, ...]


def united(terms: Iterable[Term], either: Callable[[Any, Any], Any]) -> Terms:
    """Each of these once; of one that is there twice, in two passes or on two paths, it is known what `either` says. Empty if they are too many."""
    found: dict[tuple[Place, int], Term] = {}
    for term in terms:
        same = found.get((term.place, term.sign))
        if same is not None:
            factor = term.factor if term.factor == same.factor else None
            divided = same.divided or term.divided or term.factor != same.factor
            term = replace(same, facts=either(same.facts, term.facts), factor=factor, divided=divided)
        found[term.place, term.sign] = term
    return tuple(found.values()) if len(found) <= MOST_TERMS else ()
