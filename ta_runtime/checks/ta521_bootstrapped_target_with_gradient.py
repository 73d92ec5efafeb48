"""TA521: a value's target comes from the network that learns it, and a gradient flows into the target too."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Said, Sight, Step, Suspicion


def check_step(step: Step) -> Iterator[Said]:
    for residual in step.residuals:
        if residual.shared:
            message = "this loss also trains the network through its own target: detach the target"
            numbers = {"weights behind both sides": residual.shared}
            yield Suspicion(residual.place, message, numbers, shows_elsewhere=True)
        else:
            numbers = {"weights behind the target": 0}
            because = "no weight behind the prediction is behind its target"
            yield Refutation(residual.place, because, numbers, rests_on=Sight.GRADIENTS)
