"""TA332: the mean over batches is not that over samples, because a last, shorter batch counts fully."""

from collections.abc import Iterator

from ta_lint.events.batch_mean import BATCHES, BatchMean
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (("len", "mean", "fmean", "average", "count", "avg", "update"),)
AROUND = (("*loader", "*loaders"),)

_LARGE = 0.01
"""Of the exact mean: more than most curves show."""
_PASSES = 8
"""Weights differ from pass to pass, and so does the effect of the short batch on the mean."""


def check_progress(run: Run) -> Iterator[Said]:
    for mean in run.batch_means:
        if mean.per != BATCHES or mean.trains:
            continue
        if mean.error > _LARGE or mean.is_uneven:
            message = "a short batch counts like a full one in this mean: weight each batch by its size"
            divided = ((mean.divided, "the mean of the means"),) if mean.divided is not None else ()
            yield Suspicion(mean.place, message, _evidence(mean), related=divided)
        elif mean.passes >= _PASSES:
            because = f"the means over batches and samples differ by {mean.error:.2%} at most in {mean.passes} passes"
            yield Refutation(mean.place, because, _evidence(mean))
        elif mean.passes:
            yield Unobserved(mean.place, f"{mean.passes} passes with a short last batch, too few to tell")


def _evidence(mean: BatchMean) -> dict[str, float | int | str]:
    numbers = {
        "mean over batches": float(f"{mean.mean:.4g}"),
        "mean over samples": float(f"{mean.exact:.4g}"),
        "shortest batch": mean.shortest,
        "longest batch": mean.longest,
    }
    return dict(numbers) if mean.passes else {}
