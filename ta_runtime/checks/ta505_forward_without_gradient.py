"""TA505: the forward pass to learn from is not recorded, so the model gets no gradient."""

from collections.abc import Iterator

from ta_runtime.checks.ta502_detached_loss import starved
from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.unrecorded:
            message = "the loss has no graph: the forward pass ran without recording"
            yield Suspicion(backward.place, message, {"losses without a graph": backward.unrecorded})
        elif backward.through:
            yield Refutation(backward.place, {"parameters reached": backward.parameters})
    for reach in run.reaches:
        if reach.unrecorded and not reach.cut:
            message = (
                "the model is only called without recording, and the optimizer steps without its gradients"
            )
            yield from starved(run, reach, message)
