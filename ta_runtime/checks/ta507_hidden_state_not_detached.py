"""TA507: a backward pass enters the graphs of earlier steps, through a model that ran in those and in its own."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion

EARLIER = 2
"""Earlier steps that a successful pass must enter: a loss over two steps on purpose enters one."""


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.failed:
            message = (
                "the backward pass goes into the freed graph of an earlier step and fails: detach the state"
            )
            numbers = {"earlier steps reached": backward.failed}
            yield Suspicion(backward.place, message, numbers, shows_elsewhere=True)
        elif backward.earlier >= EARLIER:
            message = "each backward pass goes through all earlier steps and gets slower: detach the state"
            numbers = {"earlier steps reached": backward.earlier}
            yield Suspicion(backward.place, message, numbers, shows_elsewhere=True)
        elif backward.followed and not backward.earlier:
            because = f"the graph of {backward.followed} steps reaches no earlier one"
            numbers = {"steps followed": backward.followed, "earlier steps reached": 0}
            yield Refutation(backward.place, because, numbers)
