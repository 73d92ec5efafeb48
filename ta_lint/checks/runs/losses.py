"""What the checks of losses share: what a backward pass comes to, and a model that gets no gradient from it."""

from collections.abc import Iterator

from ta_lint.events.graph import Backward, GradientReach
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Sight, Suspicion

AROUND = (("*backward", "*scaler"),)

LEAST = 10
"""Steps of the optimizer without a gradient, at the end of the run: a part that is left out half of the time is then never
in the loss with probability 0.001."""
EARLY_STEPS = 1000
"""Steps after which the end is not waited for: by then a phase that leaves a part out on purpose is over."""


def start(backward: Backward) -> tuple[tuple[Place, str], ...]:
    """The backward pass, as a related place."""
    return ((backward.place, "the backward pass starts here"),)


def trained(backward: Backward) -> Iterator[Refutation]:
    """The refutation for a line whose losses lead to parameters."""
    if backward.through:
        because = f"the loss reaches {backward.parameters} parameters"
        yield Refutation(backward.place, because, {"parameters reached": backward.parameters})


def graphless(backward: Backward, message: str, numbers: dict[str, float | int | str]) -> Suspicion:
    """The finding of a run about a line whose losses lead to no parameter: what makes them so may be at another line."""
    return Suspicion(backward.place, message, numbers, hides=Sight.GRADIENTS, shows_elsewhere=True)


def starved(run: Run, reach: GradientReach, message: str) -> Iterator[Suspicion]:
    """The finding about a model that got no gradient in so many steps of its optimizer."""
    if not reach.reached and reach.starved >= (LEAST if run.over else EARLY_STEPS):
        evidence = {
            "steps": reach.starved,
            "parameters": len(reach.parameters),
            "parameters with a gradient": 0,
        }
        related = ((reach.backward, "the backward pass starts here"),)
        yield Suspicion(reach.place, message, evidence, related=related, shows_elsewhere=True)
