"""TA314: the loader of a training loop yields samples stored by class in the same order in each epoch."""

from collections.abc import Iterator

from ta_runtime.facts import Loader, Refutation, Run, Samples, Suspicion

SORTED, MIXED = 0.5, 0.2
"""How often neighbours share a label: 0 if every order is equally likely, 1 if all equal the one before.
For N samples in random order it is 0, plus or minus 1 / sqrt(N)."""
SAMPLES = 64


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for loader in run.loaders:
        passes = loader.training_passes
        if not passes:
            continue
        batches = passes[0].batches
        if loader.sampler and loader.sampler != "SequentialSampler":
            yield Refutation(loader.place, {"sampler": loader.sampler})
        elif not loader.sampler or len(passes) < 2:
            continue
        elif loader.length == 1:
            yield Refutation(loader.place, {"batches per epoch": 1})
        elif not _same_order(loader):
            if _other_labels(loader):
                yield Refutation(
                    loader.place, {"epochs": len(passes), "orders": len({p.labels for p in passes})}
                )
        elif (together := _together(loader.seen)) is not None:
            numbers = {"epochs": len(passes), "batches": batches, "neighbours together": round(together, 2)}
            if together >= SORTED:
                message = "training reads samples sorted by class in every epoch, which biases steps: set `shuffle=True`"
                yield Suspicion(loader.place, message, numbers)
            elif together <= MIXED:
                yield Refutation(loader.place, numbers)


def _same_order(loader: Loader) -> bool:
    """Whether its epochs agree in all bytes, or, where samples are augmented, in all labels."""
    passes = [each for each in loader.training_passes if each.hashed == each.batches]
    first = passes[0] if passes else None
    others = [each for each in passes[1:] if first is not None and each.batches == first.batches]
    return (
        first is not None
        and bool(others)
        and all(each.contents == first.contents or (each.labels == first.labels != 0) for each in others)
    )


def _other_labels(loader: Loader) -> bool:
    labels = [each.labels for each in loader.training_passes if each.hashed == each.batches]
    return len(labels) > 1 and 0 not in labels and len(set(labels)) == len(labels)


def _together(seen: Samples) -> float | None:
    count = seen.labels.total()
    if count < SAMPLES or len(seen.labels) < 2:
        return None
    by_chance = sum((number / count) ** 2 for number in seen.labels.values())
    return float((seen.alike / count - by_chance) / (1 - by_chance))
