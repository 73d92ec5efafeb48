"""TA503: the loss is made to require a gradient, which hides that its graph does not reach the model.

The source says which line makes it so, also on a loss that has a graph today. A run sees a backward pass that starts from a leaf.
"""

from collections.abc import Iterator

from ta_lint.checks.runs import losses
from ta_lint.events.graph import Lost
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = (("requires_grad", "requires_grad_"),)
AROUND = losses.AROUND

PASSES = 2
"""Such passes of a line that are waited for while the run goes on: for a batch without a target some losses are a zero that
requires a gradient."""


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        for end in backward.lost(Lost.FORCED):
            message = (
                f"`{end.code}` hides that the loss has no graph, so nothing trains: find what cuts it off"
            )
            yield Suspicion(end.place, message, related=losses.start(backward))
        if backward.recorded and not backward.forced:
            numbers = {"losses with a graph": backward.recorded, "parameters reached": backward.parameters}
            because = f"{backward.recorded} losses have a graph, of {backward.parameters} parameters"
            yield Refutation(backward.place, because, numbers)
        elif not (backward.recorded or backward.ends) and backward.forced >= (1 if run.over else PASSES):
            message = "no parameter trains, as the loss was made a leaf by `requires_grad`: compute it with the graph"
            yield losses.graphless(backward, message, {"losses without a graph": backward.forced})
