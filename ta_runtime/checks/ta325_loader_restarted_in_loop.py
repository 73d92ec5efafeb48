"""TA325: each training step restarts its loader and takes only the first batch."""

from collections.abc import Iterator

from ta_runtime.facts import Loader, Run, Said, Suspicion, Unobserved

FEW = 20
"""Passes in a row that were left after one batch, which a step followed."""


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        place = loader.restarted_at
        if loader.restarted >= FEW and place is not None and _has_epochs(loader):
            numbers = {"passes of one batch": loader.restarted, "batches of a pass": loader.length or 0}
            yield Suspicion(
                place,
                f"the loader restarts in each step, so {_harm(loader)}: create its iterator once, before the loop",
                numbers,
            )
        elif loader.length == 1 and loader.epochs >= FEW:
            for begun in {each.begun for each in loader.passes if each.begun is not None}:
                yield Unobserved(begun, "one batch holds all samples, so a restart loses none")


def _has_epochs(loader: Loader) -> bool:
    """Whether a pass has an end, and batches that are lost: a plain order over a data set, of several batches."""
    several = loader.length is not None and loader.length > 1
    return several and loader.samples is not None and (loader.once or loader.batch_size == 1)


def _harm(loader: Loader) -> str:
    if loader.sampler == "SequentialSampler":
        return "each trains on the first batch"
    return "no epoch ends"
