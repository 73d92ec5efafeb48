"""TA504: every path from the loss to a parameter goes through a function with a zero gradient, such as rounding."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.through:
            yield Refutation(backward.place, {"parameters reached": backward.parameters})
        elif backward.stepped:
            message = "nothing trains, as a function with a zero gradient is between loss and model: use a smooth one"
            yield Suspicion(backward.place, message, {"losses": backward.stepped, "parameters reached": 0})
