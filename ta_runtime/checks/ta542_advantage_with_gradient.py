"""TA542: the weight of a log-probability carries a gradient, so the actor's loss also trains the critic."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Said, Sight, Step, Suspicion


def check_step(step: Step) -> Iterator[Said]:
    for product in step.products:
        if product.parameters:
            message = "the actor's loss also trains the critic, through the advantage: detach the advantage"
            numbers = {"parameters behind it": product.parameters}
            yield Suspicion(product.place, message, numbers, shows_elsewhere=True)
        elif product.parameters == 0:
            numbers = {"parameters behind the other factor": 0}
            because = "no parameter is behind the advantage"
            yield Refutation(product.place, because, numbers, rests_on=Sight.GRADIENTS)
