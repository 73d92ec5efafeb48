"""TA206: the graphs of the losses stay alive, one more in each step."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

GRAPHS = 8
"""Graphs of the last steps, all of them alive. A loss that is kept to be compared or logged keeps one or two."""
ENOUGH = 4
"""Steps that show that graphs are freed."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.unfreed >= GRAPHS:
            message = (
                "memory grows, as the graph of every loss stays alive: detach the loss before it is kept"
            )
            yield Suspicion(
                backward.place, message, {"graphs alive": backward.unfreed, "steps": backward.graphs}
            )
        elif backward.graphs >= ENOUGH and backward.alive < ENOUGH:
            yield Refutation(backward.place, {"graphs alive": backward.alive, "steps": backward.graphs})
