"""TA507: a recurrent state is carried from one step into the next with its graph, so a backward pass enters those of earlier steps.

The source says which call gets it. A run sees that a model ran in the graph of an earlier step and in that of its own.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ()
AROUND = ("*backward",)

EARLIER = 2
"""Earlier steps that a successful pass must enter: a loss over two steps on purpose enters one."""


def check_progress(run: Run) -> Iterator[Said]:
    for state in run.carried:
        message = "this call gets a state with the graph of all earlier steps, so memory grows: detach it after each step"
        related = ((state.backward, "this backward pass goes through all earlier steps, or fails"),)
        yield Suspicion(state.place, message, related=related)
    for backward in run.backwards:
        numbers = {"earlier steps reached": backward.failed or backward.earlier}
        if backward.failed:
            message = (
                "the backward pass goes into the freed graph of an earlier step and fails: detach the state"
            )
            yield Suspicion(backward.place, message, numbers, shows_elsewhere=True)
        elif backward.earlier >= EARLIER:
            message = "each backward pass goes through all earlier steps and gets slower: detach the state"
            yield Suspicion(backward.place, message, numbers, shows_elsewhere=True)
        elif backward.followed and not backward.earlier:
            because = f"the graph of {backward.followed} steps reaches no earlier one"
            yield Refutation(backward.place, because, {"steps followed": backward.followed, **numbers})


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Detach the state after the backward pass."""
    from ta_lint.facts.graph_edits import detach_state

    return detach_state(module, call)
