"""TA505: the forward pass to learn from is not recorded, so the model gets no gradient."""

from collections.abc import Iterator

from ta_runtime.checks.ta502_detached_loss import starved
from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.unrecorded:
            message = "nothing trains, as the forward pass ran without a graph: take it out of `no_grad`"
            yield Suspicion(backward.place, message, {"losses without a graph": backward.unrecorded})
        elif backward.through:
            yield Refutation(backward.place, {"parameters reached": backward.parameters})
    for reach in run.reaches:
        if reach.unrecorded and not reach.cut:
            message = "this model never trains, as it only runs without a graph: call it outside `no_grad`"
            yield from starved(run, reach, message)
