"""TA322: batch means are added up and divided by the number of samples."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.batch_mean import SAMPLES
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("len", "size", "shape", "count", "batch_size"),)
AROUND = (("*oader*", "dataset"), ("*loss*", "*entropy*", "*Loss*", "mean"))


def check_run(run: Run) -> Iterator[Suspicion]:
    for mean in run.batch_means:
        if mean.per == SAMPLES and mean.divided is not None and not mean.of_singles:
            message = f"`{mean.code}` is too small: divide the sum of batch means by the number of batches"
            added = ((mean.place, "the mean of a batch is added"),)
            yield Suspicion(mean.divided, message, related=added)


def fix(module: "FileFacts", division: "Site") -> "ProposedFix | None":
    """Divide by the number of batches."""
    from ta_lint.facts.division_edits import by_batches

    return by_batches(module, division)
