"""Targets that the network computes that learns them, and the weights of log-probabilities, where a gradient flows into these."""

from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.tensors import roots_of
from ta_lint.dryrun.stubs.torch.terms import Term, Terms
from ta_lint.events.event import Event
from ta_lint.events.products import Product
from ta_lint.events.residuals import Residual

LEAST_DISCOUNT = 0.9


def residuals_of(events: list[Event]) -> list[Residual]:
    """The squared differences with such a target, but for those of functions and classes that say that they take the whole gradient."""
    return [
        Residual(position(event.place), shared, position(target.added or target.place))
        for event in events
        if event.action == "squared" and not _is_on_purpose(event)
        for target, shared in _bootstrapped(event.detail["terms"])
    ]


def _bootstrapped(terms: Terms) -> list[tuple[Term, int]]:
    """The discounted values that are added to something without a gradient, with how many weights are behind them and what they are compared with."""
    return [
        (term, len(common))
        for term in terms
        if term.facts.roots
        and (term.factor is None or LEAST_DISCOUNT <= term.factor < 1)
        and any(one.sign == term.sign and _is_data(one, terms) for one in terms)
        for other in terms
        if other.sign != term.sign and other.factor == 1 and (common := term.facts.roots & other.facts.roots)
    ][:1]


def _is_data(term: Term, terms: Terms) -> bool:
    """Whether a value without a gradient is added, and not the detached half of one that has another half with it: `x + (y - x).detach()`."""
    return not term.facts.roots and not any(one.facts.roots and one.place == term.place for one in terms)


def _is_on_purpose(event: Event) -> bool:
    classes = [function.owner.name for function in event.functions if function.owner is not None]
    return is_meant("residual_gradient", *(function.name for function in event.functions), *classes)


def products_of(events: list[Event]) -> list[Product]:
    """The log-probabilities whose weight is a difference with a gradient, each by the place of that."""
    found = {
        event.detail["at"]: len(roots_of(event.detail["weight"]))
        for event in events
        if event.action == "weighed"
    }
    return [Product(position(place), parameters) for place, parameters in found.items()]
