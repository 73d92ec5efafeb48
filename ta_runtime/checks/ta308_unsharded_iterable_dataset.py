"""TA308: each worker goes over a whole stream, so every sample comes once per worker."""

from collections.abc import Iterator

from ta_runtime.checks.ta313_repeated_batch import REPEATS, SHARE
from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if not loader.iterable or not loader.trained:
            continue
        if (loader.workers or 0) < 2:
            yield Unobserved(loader.place, "the loader has fewer than two workers")
            continue
        seen = loader.seen
        if loader.repeats >= max(REPEATS, SHARE * loader.batches):
            message = "workers yield the same samples of the stream: split them with `get_worker_info`"
            numbers = {
                "workers": loader.workers or 0,
                "repeated batches": loader.repeats,
                "batches": loader.batches,
            }
            yield Suspicion(loader.place, message, numbers, cause=f"workers of {loader.place}")
        elif seen.ended and seen.whole and seen.count and not seen.repeated:
            numbers = {"workers": loader.workers or 0, "samples": seen.count, "repeated samples": 0}
            because = f"none of {seen.count} samples of {loader.workers} workers comes twice"
            yield Refutation(loader.place, because, numbers)
        elif not seen.ended:
            yield Unobserved(loader.place, "the first epoch was not over")
