"""TA856: the training samples have missing values, or samples come twice."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion
from ta_runtime.probes.sources import of_class

REPEATED = 0.01
"""Of the samples of an epoch that draws each once: fewer may be two measurements that agree."""


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        place = (of_class(loader.dataset) if loader.dataset is not None else None) or loader.place
        seen = loader.seen
        if not loader.trained or not seen.count or loader.iterable:
            continue
        repeated = seen.repeated if loader.once else 0
        numbers = {"samples": seen.count, "with missing values": seen.missing, "repeated": repeated}
        related = ((loader.place, "the loader"),) if place is not loader.place else ()
        if seen.missing:
            yield Suspicion(
                place,
                "samples with NaN or infinite values reach the training: drop or repair them",
                numbers,
                related=related,
            )
        elif repeated >= max(1, REPEATED * seen.count):
            yield Suspicion(
                place,
                "some samples count several times in an epoch: remove duplicates from the data set",
                numbers,
                related=related,
            )
        elif seen.ended and seen.whole and loader.once:
            because = f"none of {seen.count} samples has missing values or comes twice"
            yield Refutation(place, because, numbers)
