"""TA507: a backward pass enters the graphs of earlier steps, through a model that ran in those and in its own."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

EARLIER = 2
"""Earlier steps that a successful pass must enter: a loss over two steps on purpose enters one."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.failed:
            message = (
                "the backward pass goes into the freed graph of an earlier step and fails: detach the state"
            )
            yield Suspicion(backward.place, message, {"earlier steps reached": backward.failed})
        elif backward.earlier >= EARLIER:
            message = "each backward pass goes through all earlier steps and gets slower: detach the state"
            yield Suspicion(backward.place, message, {"earlier steps reached": backward.earlier})
        elif backward.followed and not backward.earlier:
            yield Refutation(
                backward.place, {"steps followed": backward.followed, "earlier steps reached": 0}
            )
