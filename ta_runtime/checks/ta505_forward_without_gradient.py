"""TA505: the forward pass to learn from is not recorded, so the model gets no gradient."""

from collections.abc import Iterator

from ta_runtime.checks.ta502_detached_loss import starved
from ta_runtime.facts import Refutation, Run, Said, Sight, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        if backward.unrecorded:
            message = "nothing trains, as the forward pass ran without a graph: take it out of `no_grad`"
            numbers = {"losses without a graph": backward.unrecorded}
            yield Suspicion(backward.place, message, numbers, hides=Sight.GRADIENTS, shows_elsewhere=True)
        elif backward.through:
            because = f"the loss reaches {backward.parameters} parameters"
            yield Refutation(backward.place, because, {"parameters reached": backward.parameters})
    for reach in run.reaches:
        if reach.unrecorded and not reach.cut:
            message = "this model never trains, as it only runs without a graph: call it outside `no_grad`"
            yield from starved(run, reach, message)
