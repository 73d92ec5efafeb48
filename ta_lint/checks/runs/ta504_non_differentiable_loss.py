"""TA504: the loss comes from a function such as argmax or rounding, whose gradient is missing or zero.

The source says which function. A run sees the paths through rounding, and reports a loss without a graph as TA502.
"""

from collections.abc import Iterator

from ta_lint.checks.runs import losses
from ta_lint.events.graph import Lost
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (("*backward", "*scaler"),)


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        for end in backward.lost(Lost.STEPPED):
            message = f"`{end.code}` gives the loss no gradient, so nothing trains: use a smooth function"
            yield Suspicion(end.place, message, related=losses.start(backward))
        if backward.through:
            yield from losses.trained(backward)
        elif backward.stepped and not backward.ends:
            message = "nothing trains, as a function with a zero gradient is between loss and model: use a smooth one"
            yield losses.graphless(backward, message, {"losses": backward.stepped, "parameters reached": 0})
