"""The summands of the losses that backward passes begin at, and of those that functions return."""

from collections.abc import Iterable

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.likelihoods import Likelihood
from ta_lint.dryrun.stubs.torch.tensors import (
    DETACHED,
    FIRST_ORDER,
    IN_STEPS,
    PARAMETER,
    Cut,
    Facts,
    Tensor,
    tensors_in,
)
from ta_lint.dryrun.stubs.torch.terms import Term
from ta_lint.dryrun.values import Place
from ta_lint.events.event import Event
from ta_lint.events.graph import End, Lost
from ta_lint.events.summands import MixedSum, PolicyTerm, Sum, Summand

_ENTROPIES = {
    Likelihood.ENTROPY: PolicyTerm.ENTROPY,
    Likelihood.NEGATIVE_ENTROPY: PolicyTerm.NEGATIVE_ENTROPY,
}

_LOST = {DETACHED: Lost.DETACHED, FIRST_ORDER: Lost.FIRST_ORDER, IN_STEPS: Lost.STEPPED}


def sums_of(events: list[Event]) -> list[Sum]:
    """The losses that are sums, in order. What a function returns is one that falls with what a policy gains."""
    sums = []
    for event in events:
        if event.action == Action.BACKWARD and len(event.detail["terms"]) > 1:
            terms = event.detail["terms"]
            cuts = _cuts(terms, event.detail["roots"] | event.detail["perhaps"])
            sums.append(Sum(position(event.place), tuple(_summand(one, cuts) for one in terms)))
        elif event.action == "returned" and event.subject is not None:
            sums += [
                Sum(position(event.place), tuple(_summand(one, {}) for one in tensor.facts.terms))
                for tensor in tensors_in([event.subject])
                if _falls(tensor.facts.terms)
            ]
    return sums


def mixed_of(events: list[Event]) -> list[MixedSum]:
    """Each sum once that is added to a mean in a program that goes back, if both are what a loss gives for samples, and not for their mean."""
    if not any(event.action == Action.BACKWARD for event in events):
        return []
    losses = {
        event.place
        for event in events
        if event.action == "loss" and getattr(event.detail["input"], "facts", Facts()).grows is not False
    }
    found: dict[Place, MixedSum] = {}
    for event in events:
        if event.action == "mixed":
            total, mean = event.detail["total"], event.detail["mean"]
            if {total.place, mean.place} <= losses:
                one = MixedSum(position(total.place), position(mean.place), total.factor)
                found.setdefault(total.place, one)
    return list(found.values())


def _summand(term: Term, cuts: dict[Term, End]) -> Summand:
    form, added = term.facts.form, term.added or term.place
    entropy = None if form is None else _ENTROPIES.get(form.kind)
    kind = entropy or (PolicyTerm.OF_POLICY if term.facts.chosen else PolicyTerm.OTHER)
    return Summand(position(term.place), position(added), code(added), term.sign, kind, cuts.get(term))


def _falls(terms: Iterable[Term]) -> bool:
    """Whether everything in a sum that weighs what a policy chose is subtracted."""
    return {one.sign for one in terms if one.facts.chosen} == {-1}


def _cuts(terms: tuple[Term, ...], reached: frozenset[Tensor]) -> dict[Term, End]:
    """Where terms were cut off from parameters that the loss reaches, or may reach. A value that is shown for the gradient of another one, or taken off
    before and added again, is meant to have none.
    """
    live = [one for one in terms if one.facts.roots or one.facts.perhaps or one.facts.open]
    dead = [one for one in terms if one not in live and one.facts.cuts]
    if {one.place for one in live} & {one.place for one in dead}:
        return {}
    used = {cut for one in live for cut in one.facts.cuts}
    ends = {}
    for term in dead:
        cut = next((one for one in reversed(term.facts.cuts) if _is_of_model(one)), None)
        if cut is not None and cut.how in _LOST and cut not in used and cut.roots & reached:
            ends[term] = End(_LOST[cut.how], position(cut.place), code(cut.place))
    return ends


def _is_of_model(cut: Cut) -> bool:
    """Whether it is from parameters, or may be, and not from inputs alone that were told to take a gradient."""
    return not cut.roots or any(one.cls is PARAMETER for one in cut.roots)
