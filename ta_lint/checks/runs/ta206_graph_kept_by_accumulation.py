"""TA206: a sum or list takes the loss with its graph in each pass, so the graphs of all passes stay alive.

The source says which line keeps them. A run sees how many graphs are alive, and not what holds them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (
    (
        "append",
        "appendleft",
        "extend",
        "insert",
        "add",
        "add_",
        "*cat*",
        "*stack",
        "enumerate",
        "*range",
        "+",
    ),
)
AROUND = (("*backward", "*scaler", "compute_loss", "training_step"),)

GRAPHS = 8
"""Graphs of the last steps, all of them alive. A loss that is kept to be compared or logged keeps one or two."""
ENOUGH = 4
"""Steps that show that graphs are freed."""


def check_progress(run: Run) -> Iterator[Said]:
    for growth in run.growths:
        if growth.freed:
            message = f"`{growth.code}` keeps the graph of every pass, so memory grows: detach what it adds"
            related = tuple((place, "the backward pass starts here") for place in growth.backwards)
            yield Suspicion(growth.place, message, related=related, is_note=growth.renewed)
    for backward in run.backwards:
        numbers = {"graphs alive": backward.unfreed or backward.alive, "steps": backward.graphs}
        if backward.unfreed >= GRAPHS:
            message = (
                "memory grows, as the graph of every loss stays alive: detach the loss before it is kept"
            )
            yield Suspicion(backward.place, message, numbers, shows_elsewhere=True)
        elif backward.graphs >= ENOUGH and backward.alive < ENOUGH:
            because = f"of the graphs of {backward.graphs} losses {backward.alive} are alive"
            yield Refutation(backward.place, because, numbers)
        else:
            yield Unobserved(backward.place, f"{backward.graphs} losses with a graph, too few to tell")


def fix(module: "FileFacts", place: "Site") -> "ProposedFix | None":
    """Detach what is added; unsafe where others see whether it has a graph."""
    from ta_lint.facts.graph_edits import detach_added

    return detach_added(module, place)
