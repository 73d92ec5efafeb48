"""TA504: every path from the loss to a parameter goes through a function with a zero gradient, such as rounding."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Sight, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.through:
            because = f"the loss reaches {backward.parameters} parameters"
            yield Refutation(backward.place, because, {"parameters reached": backward.parameters})
        elif backward.stepped:
            message = "nothing trains, as a function with a zero gradient is between loss and model: use a smooth one"
            numbers = {"losses": backward.stepped, "parameters reached": 0}
            yield Suspicion(backward.place, message, numbers, hides=Sight.GRADIENTS, shows_elsewhere=True)
