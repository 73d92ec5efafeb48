"""TA542: the weight of a log-probability carries a gradient, so the actor's loss also trains the critic."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for product in step.products:
        if product.parameters:
            message = "the actor's loss also trains the critic, through the advantage: detach the advantage"
            yield Suspicion(product.place, message, {"parameters behind it": product.parameters})
        elif product.parameters == 0:
            yield Refutation(product.place, {"parameters behind the other factor": 0})
