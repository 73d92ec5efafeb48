"""TA542: the weight of a log-probability carries a gradient, so the actor's loss also trains the critic.

A run looks at the products of each step, the source at all of them together.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ta_lint.events.products import Product
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("*", "mul", "multiply"),)
AROUND = (("log_prob", "log", "log_softmax"), ("*backward", "training_step"))


class HasProducts(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    products: list[Product]


def check_step(step: HasProducts) -> Iterator[Said]:
    for product in step.products:
        if product.parameters:
            message = "the actor's loss also trains the critic, through the advantage: detach the advantage"
            numbers = {"parameters behind it": product.parameters}
            yield Suspicion(product.place, message, numbers, shows_elsewhere=True)
        elif product.parameters == 0:
            numbers = {"parameters behind the other factor": 0}
            because = "no parameter is behind the advantage"
            yield Refutation(product.place, because, numbers, rests_on=Sight.GRADIENTS)


def fix(module: "FileFacts", advantage: "Site") -> "ProposedFix | None":
    """Detach the advantage."""
    from ta_lint.facts.graph_edits import detach_term

    return detach_term(module, advantage)
