"""TA507: a backward pass goes into the graphs of earlier steps, through a model that ran in those and in its own."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

EARLIER = 2
"""Steps that a pass which does not raise goes back into: one is what a loss for two steps on purpose does."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.failed:
            message = "the backward pass goes into the graph of an earlier step, and fails"
            yield Suspicion(backward.place, message, {"earlier steps reached": backward.failed})
        elif backward.earlier >= EARLIER:
            message = "the backward pass goes through the graphs of all the steps before"
            yield Suspicion(backward.place, message, {"earlier steps reached": backward.earlier})
        elif backward.followed and not backward.earlier:
            yield Refutation(
                backward.place, {"steps followed": backward.followed, "earlier steps reached": 0}
            )
