"""TA618: epochs leave their loader before its end: rounded down, one batch too few, or by a leftover limit."""

import re
from collections.abc import Iterator

from ta_runtime.facts import Loader, Pass, Refutation, Run, Said, Suspicion, Unobserved
from ta_runtime.probes import loops
from ta_runtime.probes.places import Place

EPOCHS = 2
"""That were left at the same batch. A number of steps leaves only the last one."""
_A_FEW = 100
"""As in the linter: a stop after more batches than this may be intended."""
_TRIES_OUT = re.compile(r"debug|dry|smoke|fast_dev|sanity|profil|test|bench|demo", re.IGNORECASE)


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if loader.length is not None and loader.trained:
            for place in dict.fromkeys(each.place for each in loader.passes if each.place is not None):
                passes = [each for each in loader.training_passes if each.place == place]
                if passes:
                    yield from _epochs(place, passes, loader.length)
            if run.over:
                yield from _end(loader, loader.length)


def _epochs(place: Place, passes: list[Pass], length: int) -> Iterator[Said]:
    """Every epoch takes the same part of the batches: the code that takes them says how many."""
    loop = loops.around(place)
    if loop is None:
        return
    batches = passes[0].batches
    numbers = {"batches per epoch": batches, "of": length, "epochs": len(passes)}
    cut = (loop.cut,) if loop.cut is not None else ()
    if any(each.ended or each.batches >= length for each in passes):
        if loop.limit is not None and loop.limit >= length:
            reason = f"the loader has {length} batches, which is within the limit of {loop.limit}"
            yield Unobserved(loop.place, reason, cut)
            return
        because = f"an epoch takes all {length} batches"
        yield Refutation(loop.place, because, numbers, cut)
    elif _are_cut_alike(passes) and not _TRIES_OUT.search(loop.function):
        if loop.cut is not None and loop.limit is not None and _is_at(batches, loop.limit):
            message = (
                "training leaves the loop after a few batches of each epoch: remove the limit used to debug"
            )
            yield Suspicion(loop.cut, message, numbers, related=((loop.place, "the training loop"),))
        elif batches == length - 1:
            yield Suspicion(
                loop.place,
                "the last batch of each epoch is left out: round the number of batches up",
                numbers,
            )


def _end(loader: Loader, length: int) -> Iterator[Said]:
    """The whole training makes a number of steps that is rounded down: its last epoch is not finished."""
    last = loader.passes[-1]
    place = loader.stepped_at
    loop = loops.around(place) if place is not None else None
    if loop is None or not loop.floored or not last.steps:
        return
    numbers = {"batches of the last epoch": last.batches, "of": length, "epochs": loader.epochs}
    if last.ended or last.batches >= length:
        because = f"the last epoch takes all {length} batches"
        yield Refutation(loop.place, because, numbers)
    else:
        message = "the last epoch is not finished, as the number of steps is rounded down: round it up"
        yield Suspicion(loop.place, message, numbers)


def _are_cut_alike(passes: list[Pass]) -> bool:
    """Whether all epochs end at the same batch, and not because another loader came to its end."""
    counts = {each.batches for each in passes}
    together = sum(each.paired for each in passes)
    batches = sum(each.batches for each in passes)
    return len(passes) >= EPOCHS and len(counts) == 1 and min(counts) > 1 and 2 * together < batches


def _is_at(batches: int, limit: int) -> bool:
    """Whether a literal limit ended the pass: the batch at which it is noticed may have been taken already."""
    return limit <= _A_FEW and limit <= batches <= limit + 2
