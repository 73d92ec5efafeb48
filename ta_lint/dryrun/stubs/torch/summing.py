"""Sums of tensors: which terms an operation leaves, turns, scales or adds, and whose difference a value is."""

import ast
from collections.abc import Callable
from dataclasses import replace
from itertools import product

from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.machine.factors import is_open, may_divide
from ta_lint.dryrun.stubs.torch import likelihoods
from ta_lint.dryrun.stubs.torch.amounts import grows_with_samples
from ta_lint.dryrun.stubs.torch.likelihoods import multiplied
from ta_lint.dryrun.stubs.torch.tensors import (
    FACTS,
    Facts,
    Tensor,
    joined_facts,
    roots_of,
    terms_of,
    why_unknown,
)
from ta_lint.dryrun.stubs.torch.terms import Term, Terms, united
from ta_lint.dryrun.values import Known, Place, Sequence, Unknown, Value

Rule = Callable[[Call], Terms]
"""The terms of what a call gives, from those of its arguments."""


def _same(made: Call) -> Terms:
    """Those of the first argument, or of all in it if that is a list."""
    if not made.args:
        return ()
    first = made.args[0]
    every = first.every if isinstance(first, Sequence) else (first,)
    return united((term for one in every for term in terms_of(one)), joined_facts)


def _turned(made: Call) -> Terms:
    return tuple(likelihoods.turned(term, made.place) for term in _same(made))


def _added(made: Call) -> Terms:
    return _sum(made, 1, 1)


def _subtracted(made: Call) -> Terms:
    return _sum(made, 1, -1)


def _subtracted_from(made: Call) -> Terms:
    return _sum(made, -1, 1)


def _sum(made: Call, *signs: int) -> Terms:
    if len(made.args) != 2 or made.kwargs:
        return ()
    places = operands(made)
    if made.name.startswith("__r"):
        places.reverse()
    _mixed(made)
    every = [
        replace(term, sign=sign * term.sign, added=term.added or place)
        for value, sign, place in zip(made.args, signs, places, strict=True)
        for term in terms_of(value) or _unseen(value, place or made.place)
    ]
    return united(every, joined_facts)


def _mixed(made: Call) -> None:
    """Something that grows with the number of samples is added to something that does not, and both train."""
    one, other = ([term for term in terms_of(value) if term.facts.roots] for value in made.args)
    for total, mean in (*product(one, other), *product(other, one)):
        is_known = total.factor is not None and not total.divided
        if total.facts.grows and mean.facts.grows is False and is_known:
            made.emit("mixed", None, total=total, mean=mean)


def _unseen(value: Value, place: Place) -> Terms:
    """A summand that is no known number, and may be a tensor of which nothing is known."""
    return () if isinstance(value, Known) else (Term(place, Facts(open=why_unknown(value))),)


def operands(made: Call) -> list[Place | None]:
    """Where the operands of a sum or product of two stand, from left to right."""
    node = made.node
    left, right = getattr(node, "left", None), getattr(node, "right", None)  # `a + b`
    if (value := getattr(node, "value", None)) is not None:  # `a += b`
        left, right = getattr(node, "target", None), value
    elif (given := getattr(node, "args", None)) is not None:  # `a.add(b)` and `torch.add(a, b)`
        left, right = (given if len(given) > 1 else [getattr(node.func, "value", None), *given])[:2]  # type: ignore[attr-defined]
    return [None if one is None else made.machine.place(one) for one in (left, right)]


def _product(made: Call) -> Terms:
    if len(made.args) != 2:
        return ()
    one, other = made.args
    if one is other:
        return _square(made)
    weighed(made, one, other)
    found = multiplied(made, one, other)
    if found is not None:
        return (found,)
    for value, factor in ((one, other), (other, one)):
        if isinstance(value, Tensor) and _is_number(factor):
            return _scaled(value, factor)
    return _weighted(made)


def _quotient(made: Call) -> Terms:
    value, divisor = made.args[:2]
    if not _is_number(divisor):
        return _weighted(made, only_first=True)
    by = divisor.value if isinstance(divisor, Known) and not is_open(divisor) else None
    is_share = not grows_with_samples(divisor)
    is_written = isinstance(getattr(made.node, "right", None), ast.Constant)
    return tuple(
        (term if is_written or not term.facts.grows else _perhaps_share(term)).times(
            1 / by if by else None, divided=is_share
        )
        for term in terms_of(value)
    )


def _perhaps_share(term: Term) -> Term:
    """A sum that a computed number divides: that may be how many samples there are."""
    return replace(term, facts=replace(term.facts, grows=None))


def _is_number(value: Value) -> bool:
    if isinstance(value, Known):
        return isinstance(value.value, int | float)
    return isinstance(value, Unknown) and value.type is not None


def _scaled(value: Value, factor: Value) -> Terms:
    number = factor.value if isinstance(factor, Known) and not is_open(factor) else None
    if number == 0:
        return ()
    return tuple(term.times(number, divided=may_divide(factor)) for term in terms_of(value))


def _weighted(made: Call, *, only_first: bool = False) -> Terms:
    """The terms of the one of two tensors that has a graph, as the other weighs them; a product of two graphs is a term of its own."""
    one, other = made.args[:2]
    for value, weight in ((one, other),) if only_first else ((one, other), (other, one)):
        if _may_lead(value) and not _may_lead(weight):
            divided = only_first or may_divide(weight)
            return tuple(term.times(None, divided=divided) for term in terms_of(value))
    return ()


def _power(made: Call) -> Terms:
    return _square(made) if made.constant(1, "exponent") == 2 else ()


def _square(made: Call) -> Terms:
    squared(made, terms_of(made.args[0]))
    return ()


def squared(made: Call, terms: Terms) -> None:
    """The square of a difference of what has a graph on both sides is taken, or another loss of it."""
    if {term.sign for term in terms if term.facts.roots} == {1, -1}:
        made.emit("squared", None, terms=terms)


def difference(one: Value, other: Value) -> Terms:
    """The terms of `one - other`."""
    return (*terms_of(one), *(term.times(-1) for term in terms_of(other)))


def weighed(made: Call, one: Value, other: Value) -> None:
    """The log-probability of what was chosen is multiplied with a difference that has a graph."""
    if made.machine.mode("recording") is not True or not (
        isinstance(one, Tensor) and isinstance(other, Tensor)
    ):
        return
    places = operands(made)
    if made.name == "__rmul__":
        places.reverse()
    for log, weight, at in ((one, other, places[1]), (other, one, places[0])):
        if log.facts.chosen and roots_of(log) and weight.facts.differs and roots_of(weight):
            made.emit("weighed", log, weight=weight, at=at or made.place)
            return


def _may_lead(value: Value) -> bool:
    """Whether autograd certainly leads somewhere from a value, or may."""
    return isinstance(value, Tensor) and bool(
        value.facts.roots or value.facts.perhaps or value.takes_gradient
    )


KEPT = """
    __pos__ cat clone concat concatenate contiguous cpu cuda double expand expand_as flatten float half hstack mean nanmean nansum permute
    positive ravel repeat reshape squeeze stack sum swapaxes t to transpose type type_as unsqueeze view view_as vstack
"""
RULES: dict[str, Rule] = {
    **dict.fromkeys(KEPT.split(), _same),
    **dict.fromkeys("__neg__ neg negative neg_".split(), _turned),
    **dict.fromkeys("__add__ __iadd__ __radd__ add add_".split(), _added),
    **dict.fromkeys("__isub__ __sub__ sub sub_ subtract".split(), _subtracted),
    **dict.fromkeys("__rsub__ rsub".split(), _subtracted_from),
    **dict.fromkeys("__imul__ __mul__ __rmul__ mul mul_ multiply".split(), _product),
    **dict.fromkeys("__pow__ pow".split(), _power),
    "square": _square,
    **dict.fromkeys("__itruediv__ __truediv__ div div_ divide true_divide".split(), _quotient),
}


def taking_apart(name: str, effect: Effect) -> Effect:
    """What an operation does, and the terms of its result as well."""
    rule = RULES.get(name)
    if rule is None:
        return effect

    def run(made: Call) -> Value:
        terms = () if rule is _same and made.machine.by_library else rule(made)
        result = effect(made)
        if rule is _quotient and not terms and isinstance(result, Tensor):
            terms = (Term(made.place, result.facts).times(None, divided=True),)
        if terms and isinstance(result, Tensor) and not result.takes_gradient:
            differs = result.facts.differs or _is_difference(terms, result.facts)
            facts = replace(result.facts, terms=terms, differs=differs)
            if any(result is one for one in made.args):
                made.machine.state.write(result.fields, FACTS, facts)
            else:
                return Tensor(facts, result.made, result.cls)
        return result

    return run


def _is_difference(terms: Terms, facts: Facts) -> bool:
    """Whether something is subtracted from something else, and autograd leads on from that."""
    return bool(facts.roots or facts.perhaps) and len({term.sign for term in terms}) == 2
