"""TA332: the mean over batches differs from that over samples, because the last, shorter batch counts fully."""

from collections.abc import Iterator

from ta_runtime.facts import BatchMean, Refutation, Run, Said, Suspicion, Unobserved

_LARGE = 0.01
"""Of the exact mean: more than most curves show."""
_PASSES = 8
"""Weights differ from pass to pass, and so does the effect of the short batch on the mean."""


def check_progress(run: Run) -> Iterator[Said]:
    for mean in run.batch_means:
        if mean.error > _LARGE:
            message = "a short batch counts like a full one in this mean: weight each batch by its size"
            yield Suspicion(mean.place, message, _evidence(mean))
        elif mean.passes >= _PASSES and mean.error <= _LARGE:
            because = f"the means over batches and samples differ by {mean.error:.2%} at most in {mean.passes} passes"
            yield Refutation(mean.place, because, _evidence(mean))
        elif mean.passes < _PASSES:
            yield Unobserved(mean.place, f"{mean.passes} passes with a short last batch, too few to tell")


def _evidence(mean: BatchMean) -> dict[str, float | int | str]:
    return {
        "mean over batches": float(f"{mean.mean:.4g}"),
        "mean over samples": float(f"{mean.exact:.4g}"),
        "shortest batch": mean.shortest,
        "longest batch": mean.longest,
    }
