"""TA503: `backward` starts from a leaf: the loss was made to require a gradient, and has no graph."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

PASSES = 2
"""Such passes of a line that are waited for while the run goes on: for a batch without a target some losses are a zero that
requires a gradient."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.recorded and not backward.forced:
            numbers = {"losses with a graph": backward.recorded, "parameters reached": backward.parameters}
            yield Refutation(backward.place, numbers)
        elif not backward.recorded and backward.forced >= (1 if run.over else PASSES):
            message = "no parameter trains, as the loss was made a leaf by `requires_grad`: compute it with the graph"
            yield Suspicion(backward.place, message, {"losses without a graph": backward.forced})
