"""TA503: `backward` starts from a leaf: the loss was made to require a gradient, and has no graph."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Sight, Suspicion

PASSES = 2
"""Such passes of a line that are waited for while the run goes on: for a batch without a target some losses are a zero that
requires a gradient."""


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.recorded and not backward.forced:
            numbers = {"losses with a graph": backward.recorded, "parameters reached": backward.parameters}
            because = f"{backward.recorded} losses have a graph, of {backward.parameters} parameters"
            yield Refutation(backward.place, because, numbers)
        elif not backward.recorded and backward.forced >= (1 if run.over else PASSES):
            message = "no parameter trains, as the loss was made a leaf by `requires_grad`: compute it with the graph"
            numbers = {"losses without a graph": backward.forced}
            yield Suspicion(backward.place, message, numbers, hides=Sight.GRADIENTS, shows_elsewhere=True)
