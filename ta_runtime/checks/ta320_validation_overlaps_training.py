"""TA320: samples of an evaluation were trained on before."""

import re
from collections.abc import Iterator

from ta_runtime.facts import Loader, Overlap, Refutation, Run, Said, Suspicion
from ta_runtime.probes.sources import assigned_to

SHARE = 0.01
"""Of the samples that are evaluated: fewer may be two measurements that agree."""
CHANCE = 10
"""How many times more samples must be shared than come again within one of the two, where contents are compared."""
SAMPLES = 32
_TRAINS = re.compile(r"train|fit|overfit|memory|bank", re.IGNORECASE)
_EVALUATES = re.compile(r"(^|[._])(te|test|val|valid|eval|dev|held_?out)", re.IGNORECASE)


def check_run(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        compared = [each for each in run.overlaps if each.evaluated is loader]
        if not compared:
            continue
        most = max(compared, key=lambda each: each.share)
        numbers = {"samples compared": most.samples, "trained on": most.shared}
        if _is_leak(most) and not _is_meant(most, run):
            message = (
                "the evaluation uses samples of the training data, so its score is too good: split them apart"
            )
            yield Suspicion(
                loader.place, message, numbers, related=((most.trained.place, "the loader that trains"),)
            )
        elif not most.shared and most.samples and all(each.whole for each in compared):
            because = f"none of {most.samples} samples was trained on"
            yield Refutation(loader.place, because, numbers)


def _is_leak(overlap: Overlap) -> bool:
    enough = overlap.by_number or overlap.samples >= SAMPLES
    return enough and overlap.share > max(SHARE, CHANCE * overlap.repeated)


def _is_meant(overlap: Overlap, run: Run) -> bool:
    """Whether the training data is scored on purpose: by the name, or beside other data that was held out."""
    name = assigned_to(overlap.evaluated.place)
    if _TRAINS.search(name):
        return True
    return not _EVALUATES.search(name) and any(
        _is_held_out(loader, run) for loader in run.loaders if loader is not overlap.evaluated
    )


def _is_held_out(loader: Loader, run: Run) -> bool:
    shares = [each.share for each in run.overlaps if each.evaluated is loader]
    return bool(shares) and max(shares) <= SHARE
