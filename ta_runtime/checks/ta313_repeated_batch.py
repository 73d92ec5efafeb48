"""TA313: whole training batches come again within an epoch, or several ranks get the same batches."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

REPEATS = 3
SHARE = 0.1
"""Of all batches. If workers repeat each other, it is at least half."""
COMPARED = 4
"""Batches in a row that must agree between two ranks."""


def check_run(run: Run) -> Iterator[Suspicion]:
    for number, loader in enumerate(run.loaders):
        if not loader.trained:
            continue
        if loader.once and loader.repeats >= max(REPEATS, SHARE * loader.batches):
            message = (
                "the same batches come twice in an epoch and train twice: check the sampler and the data set"
            )
            if (loader.workers or 0) > 1:
                message = "workers yield the same batches and miss other data: split the data set by worker"
            numbers = {"repeated batches": loader.repeats, "batches": loader.batches}
            yield Suspicion(loader.place, message, numbers, cause=f"workers of {loader.place}", order=1)
        same = [
            rank
            for rank, told in sorted(run.peers.items())
            if number < len(told.batches) and _same(loader.digests, told.batches[number])
        ]
        if same and run.data_parallel and loader.divides:  # where nothing divides its samples: TA802
            message = "ranks train on the same batches and miss other data: split the data set by rank"
            yield Suspicion(loader.place, message, {"ranks": ",".join(map(str, [run.rank, *same]))})


def _same(own: list[str], other: list[str]) -> bool:
    count = min(len(own), len(other))
    return count >= COMPARED and own[:count] == other[:count] and len(set(own[:count])) > 1
