"""TA206: the graphs of the losses stay alive, one more in each step."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

GRAPHS = 8
"""Graphs of the last steps, all of them alive. A loss that is kept to be compared or logged keeps one or two."""
ENOUGH = 4
"""Steps that show that graphs are freed."""


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.unfreed >= GRAPHS:
            message = (
                "memory grows, as the graph of every loss stays alive: detach the loss before it is kept"
            )
            yield Suspicion(
                backward.place,
                message,
                {"graphs alive": backward.unfreed, "steps": backward.graphs},
                shows_elsewhere=True,
            )
        elif backward.graphs >= ENOUGH and backward.alive < ENOUGH:
            because = f"of the graphs of {backward.graphs} losses {backward.alive} are alive"
            evidence = {"graphs alive": backward.alive, "steps": backward.graphs}
            yield Refutation(backward.place, because, evidence)
        else:
            yield Unobserved(backward.place, f"{backward.graphs} losses with a graph, too few to tell")
