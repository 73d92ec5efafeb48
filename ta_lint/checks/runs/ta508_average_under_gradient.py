"""TA508: tensors computed from parameters hold the graphs of their values at earlier steps.

The source says which line computes them, a run which loop over parameters.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("parameters", "named_parameters"), ("lerp_", "add_", "+"))

MESSAGE = "averages of parameters keep the graph of all updates: update them under `no_grad()`"


def check_progress(run: Run) -> Iterator[Said]:
    for growth in run.growths:
        if growth.of_parameters:
            related = ((growth.loop, "the loop over the parameters"),) if growth.loop is not None else ()
            yield Suspicion(growth.place, MESSAGE, related=related)
    for average in run.averages:
        if average.graphs:
            numbers = {"averages": average.graphs, "nodes of the largest": average.nodes}
            yield Suspicion(average.place, MESSAGE, numbers, shows_elsewhere=True)
        elif not average.others:
            because = f"no average has a graph in {average.looks} steps looked at"
            numbers = {"averages with a graph": 0, "steps looked at": average.looks}
            yield Refutation(average.place, because, numbers)


def fix(module: "FileFacts", average: "Site") -> "ProposedFix | None":
    """Detach the parameter."""
    from ta_lint.facts.graph_edits import detach_parameter

    return detach_parameter(module, average)
