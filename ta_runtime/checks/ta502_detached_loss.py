"""TA502: a model's output has a graph, but the loss leads to no part of it."""

from collections.abc import Iterator

from ta_runtime.facts import Reach, Refutation, Run, Said, Sight, Suspicion

LEAST = 10
"""Steps of the optimizer without a gradient, at the end of the run: a part that is left out half of the time is then never
in the loss with probability 0.001."""
EARLY_STEPS = 1000
"""Steps after which the end is not waited for: by then a phase that leaves a part out on purpose is over."""


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.cut:
            message = "the loss has no graph, though the model's output has one: remove the `detach` or `item` in between"
            numbers = {"losses without a graph": backward.cut}
            yield Suspicion(backward.place, message, numbers, hides=Sight.GRADIENTS, shows_elsewhere=True)
        elif backward.through:
            because = f"the loss reaches {backward.parameters} parameters"
            yield Refutation(backward.place, because, {"parameters reached": backward.parameters})
    for reach in run.reaches:
        if reach.cut:
            message = "this model gets no gradient from the loss: remove the `detach` or `item` between them"
            yield from starved(run, reach, message)


def starved(run: Run, reach: Reach, message: str) -> Iterator[Suspicion]:
    """The finding about a model that got no gradient in so many steps of its optimizer."""
    steps = run.steps_without_gradient(reach.parameters)
    if not reach.reached and steps >= (LEAST if run.over else EARLY_STEPS):
        evidence = {"steps": steps, "parameters": len(reach.parameters), "parameters with a gradient": 0}
        yield Suspicion(
            reach.place,
            message,
            evidence,
            related=((reach.backward, "the backward pass starts here"),),
            shows_elsewhere=True,
        )
