"""Probabilities, their logarithms, entropies, and the log-probabilities of what was chosen: what a tensor is of a distribution."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.machine.library import UNSEEN, method, stub
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed, roots_of, terms_of
from ta_lint.dryrun.stubs.torch.terms import Term
from ta_lint.dryrun.values import Known, Place, Unknown, Value


class Likelihood(StrEnum):
    """What the numbers of a tensor are of a distribution."""

    PROBABILITIES = "probabilities"
    LOGARITHMS = "their logarithms"
    PICKED = "the probabilities of what was chosen"
    ENTROPY = "an entropy"
    NEGATIVE_ENTROPY = "a negative entropy, the sum of p * log(p)"


@dataclass(frozen=True, slots=True)
class Form:
    """That, and of which distribution: the scores that softmax gets, or the probabilities themselves. None of entropies."""

    kind: Likelihood
    of: Any = None


def form_of(value: Value | None) -> Form | None:
    """What a value is of a distribution."""
    return value.facts.form if isinstance(value, Tensor) else None


def _softmax(made: Call) -> Form | None:
    return Form(Likelihood.PROBABILITIES, made.args[0])


def _log_softmax(made: Call) -> Form | None:
    return Form(Likelihood.LOGARITHMS, made.args[0])


def _log(made: Call) -> Form | None:
    return Form(Likelihood.LOGARITHMS, _distribution(made.args[0]))


def _distribution(value: Value) -> Value:
    """Of which distribution a value has the probabilities: itself, if nobody knows."""
    form = form_of(value)
    if isinstance(value, Unknown) and len(value.got) == 2 and isinstance(value.got[1], Known):
        return value.got[0]  # `p + 1e-8`
    return form.of if form is not None and form.kind is Likelihood.PROBABILITIES else value


def _exp(made: Call) -> Form | None:
    form = form_of(made.args[0])
    if _is_turned_back(made):
        return Form(Likelihood.PICKED)
    return (
        Form(Likelihood.PROBABILITIES, form.of)
        if form is not None and form.kind is Likelihood.LOGARITHMS
        else None
    )


def _is_turned_back(made: Call) -> bool:
    """Whether the log-probability of what was chosen becomes a probability again; that of a difference is a ratio."""
    value = made.args[0]
    is_alone = isinstance(value, Tensor) and value.facts.chosen and not value.facts.differs
    return is_alone and made.name == "exp"


def _picked(made: Call) -> Form | None:
    """Of some of the probabilities; logarithms of these are those of what was chosen."""
    form = form_of(made.args[0])
    return Form(Likelihood.PICKED) if form is None or form.kind is Likelihood.PROBABILITIES else None


def _shifted(made: Call) -> Form | None:
    """A small number against zeros changes nothing."""
    value, *numbers = made.args
    is_shifted = numbers and all(isinstance(one, Known) for one in numbers)
    form = form_of(value)
    if form is not None and form.kind is Likelihood.PICKED:
        return form
    return Form(Likelihood.PROBABILITIES, _distribution(value)) if is_shifted or made.kwargs else None


def _entropies(made: Call) -> Form | None:
    return Form(Likelihood.ENTROPY)


def _ratio(made: Call) -> Form | None:
    """Of two probabilities it is none; `said` asks whether they are those of what was chosen."""
    return None


def _reshaped(made: Call) -> Form | None:
    """The probabilities of what was chosen are that in any shape."""
    form = form_of(made.args[0])
    return form if form is not None and form.kind is Likelihood.PICKED else None


RULES: dict[str, Callable[[Call], Form | None]] = {
    "softmax": _softmax, "log_softmax": _log_softmax, "log": _log, "exp": _exp, "gather": _picked, "entr": _entropies,
    **dict.fromkeys("__truediv__ div".split(), _ratio),
    **dict.fromkeys("flatten reshape squeeze unsqueeze view".split(), _reshaped),
    **dict.fromkeys("__add__ __radd__ add clamp clamp_min clip".split(), _shifted),
}  # fmt: skip


def telling(name: str, effect: Effect) -> Effect:
    """What an operation does, and what its result is of a distribution as well."""
    rule = RULES.get(name)
    if rule is None:
        return effect

    def run(made: Call) -> Value:
        result = effect(made)
        is_new = isinstance(result, Tensor) and not any(result is one for one in made.args)
        if isinstance(result, Tensor) and is_new and made.args and not made.machine.by_library:
            return said(made, result, rule(made))
        return result

    return run


def said(made: Call, result: Tensor, form: Form | None) -> Tensor:
    """A result that is this of a distribution."""
    chosen = (result.facts.chosen and not _is_turned_back(made)) or _is_choice(made)
    differs = result.facts.differs and made.name != "exp"  # a ratio is a difference no longer
    if form is None and chosen == result.facts.chosen and differs == result.facts.differs:
        return result
    facts = replace(result.facts, form=form, chosen=chosen, differs=differs)
    return Tensor(facts, result.made, result.cls)


def _is_choice(made: Call) -> bool:
    """Whether a part of all log-probabilities is taken, or the logarithm of a part of all probabilities."""
    form, name = form_of(made.args[0]), made.name
    if form is None:
        return False
    if form.kind is Likelihood.PICKED:  # their logarithm, or the ratio to what they were
        return name in ("log", "div", "__truediv__")
    return name == "gather" and form.kind is Likelihood.LOGARITHMS


def part(made: Call, result: Tensor) -> Tensor:
    """What an index takes: of all log-probabilities, those of what was chosen."""
    form = form_of(made.args[0])
    if form is None or form.kind not in (Likelihood.PROBABILITIES, Likelihood.LOGARITHMS):
        return result
    is_log = form.kind is Likelihood.LOGARITHMS
    return Tensor(
        replace(result.facts, form=None if is_log else Form(Likelihood.PICKED), chosen=is_log), result.made
    )


def turned(term: Term, place: Place) -> Term:
    """The negative of a term: that of a negative entropy is an entropy, but not that of a sum which it is in."""
    form = term.facts.form
    is_alone = term.added is None and term.sign > 0
    if form is not None and form.kind is Likelihood.NEGATIVE_ENTROPY and is_alone:
        return replace(term, place=place, facts=replace(term.facts, form=Form(Likelihood.ENTROPY)))
    return term.times(-1)


def multiplied(made: Call, one: Value, other: Value) -> Term | None:
    """The term that the product of probabilities with their own logarithms is, None of any other."""
    for log, weight in ((one, other), (other, one)):
        sign, form = _signed(log)
        turn, _ = _signed(weight)
        if form is not None and form.kind is Likelihood.LOGARITHMS and _is_same(form.of, weight):
            facts = computed(
                made.machine, [one, other], made.place, form=Form(Likelihood.NEGATIVE_ENTROPY)
            ).facts
            term = Term(made.place, facts)
            return turned(term, made.place) if sign * turn < 0 else term
    return None


def _signed(value: Value) -> tuple[int, Form | None]:
    """The sign and the form of what is one term alone."""
    terms = terms_of(value)
    return (terms[0].sign, terms[0].facts.form) if len(terms) == 1 else (1, form_of(value))


def _is_same(distribution: Value, weight: Value) -> bool:
    """Whether a factor is the probabilities of this distribution."""
    _, form = _signed(weight)
    return weight is distribution or (
        form is not None and form.kind is Likelihood.PROBABILITIES and form.of is distribution
    )


# -- what nobody has described, and is asked for what distributions are asked for -----------------------


@stub("ta_lint.log_probability")
@method(UNSEEN, "log_prob")
def _log_probability(made: Call) -> Value:
    """Of an action. Nobody has chosen one that a gradient goes through."""
    of, *actions = made.args
    result = computed(made.machine, [of, *actions], made.place)
    reparameterised = any(isinstance(one, Tensor) and roots_of(one) for one in actions)
    return Tensor(replace(result.facts, chosen=not reparameterised), result.made)


@stub("ta_lint.entropy")
@method(UNSEEN, "entropy")
def _entropy(made: Call) -> Value:
    result = computed(made.machine, made.args[:1], made.place)
    return Tensor(replace(result.facts, form=Form(Likelihood.ENTROPY)), result.made)


@method(UNSEEN, "log")
def _logarithm(made: Call) -> Value:
    """Of a tensor; with an argument it writes to a log."""
    if len(made.args) > 1 or made.kwargs:
        return Unknown("what is logged")
    result = computed(made.machine, made.args, made.place)
    return said(made, result, _log(made))


@method(UNSEEN, "gather")
def _gathered(made: Call) -> Value:
    """Along a dimension, of a tensor; else of the parts of several processes."""
    if len(made.args) < 3 or not isinstance(made.args[1], Known):
        return Unknown("what is gathered")
    return said(made, computed(made.machine, made.args, made.place), _picked(made))
