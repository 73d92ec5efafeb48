"""TA505: the forward pass to learn from is not recorded, so the model gets no gradient.

The source says which expression is computed without a graph. A run sees which models ran, and that none of them recorded.
"""

from collections.abc import Iterator

from ta_lint.checks.runs import losses
from ta_lint.events.graph import Lost
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ("*backward",)
AROUND = (("no_grad", "inference_mode", "set_grad_enabled"),)


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        for end in backward.lost(Lost.UNRECORDED):
            message = f"`backward` raises, as no graph is recorded: take `{end.code}` out of `no_grad`"
            yield Suspicion(backward.place, message, related=((end.place, "computed here"),))
        if backward.unrecorded and not backward.ends:
            message = "nothing trains, as the forward pass ran without a graph: take it out of `no_grad`"
            yield losses.graphless(backward, message, {"losses without a graph": backward.unrecorded})
        elif not backward.unrecorded:
            yield from losses.trained(backward)
    for reach in run.reaches:
        if reach.unrecorded and not reach.cut:
            message = "this model never trains, as it only runs without a graph: call it outside `no_grad`"
            yield from losses.starved(run, reach, message)
