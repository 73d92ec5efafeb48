"""TA438: parts with frozen parameters still train their batch norms or apply dropout."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = (("train", ".step("),)
AROUND = (("requires_grad", "requires_grad_"),)

FEW = 2
"""Looks that a verdict needs: parameters still frozen at each."""


def check_run(run: Run) -> Iterator[Said]:
    for found in run.frozen_parts:
        if found.looks < FEW:
            continue
        related = ((found.called_at, "the model is called here"),)
        if found.norms:
            message = (
                f"batch norm of the frozen `{found.part}` still moves its statistics: put it into `eval()`"
            )
            yield Suspicion(found.place, message, {"batch norms": found.norms}, related=related)
        elif found.dropouts:
            message = f"dropout in the frozen `{found.part}` still drops: put it into `eval()`"
            yield Suspicion(found.place, message, {"dropout layers": found.dropouts}, related=related)
        elif found.still == found.looks:
            because = f"all frozen parts are in evaluation mode in {found.still} looks"
            yield Refutation(found.place, because, {"looks in evaluation mode": found.still})
