"""TA521: a value's target comes from the network that learns it, and a gradient flows into the target too."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for residual in step.residuals:
        if residual.shared:
            message = "this loss also trains the network through its own target: detach the target"
            yield Suspicion(residual.place, message, {"weights behind both sides": residual.shared})
        else:
            yield Refutation(residual.place, {"weights behind the target": 0})
