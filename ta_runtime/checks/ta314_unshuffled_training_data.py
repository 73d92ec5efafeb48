"""TA314: the loader of a training loop yields samples stored by class in the same order in each epoch."""

from collections.abc import Iterator

from ta_runtime.facts import Loader, Refutation, Run, Said, Samples, Suspicion, Unobserved

SORTED, MIXED = 0.5, 0.2
"""How often neighbours share a label: 0 if every order is equally likely, 1 if all equal the one before.
For N samples in random order it is 0, plus or minus 1 / sqrt(N)."""
SAMPLES = 64


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        passes = loader.training_passes
        if not passes:
            continue
        batches = passes[0].batches
        if loader.sampler and loader.sampler != "SequentialSampler":
            because = f"a {loader.sampler} chooses the order"
            yield Refutation(loader.place, because, {"sampler": loader.sampler})
        elif not loader.sampler:
            continue
        elif len(passes) < 2:
            yield Unobserved(loader.place, "fewer than two epochs began")
        elif loader.length == 1:
            yield Unobserved(loader.place, "one batch holds all samples, so their order has no effect")
        elif not _same_order(loader):
            if _other_labels(loader):
                orders = len({each.labels for each in passes})
                because = f"{len(passes)} epochs have {orders} orders"
                yield Refutation(loader.place, because, {"epochs": len(passes), "orders": orders})
        elif (together := _together(loader.seen)) is not None:
            numbers = {"epochs": len(passes), "batches": batches, "neighbours together": round(together, 2)}
            if together >= SORTED:
                message = "training reads samples sorted by class in every epoch, which biases steps: set `shuffle=True`"
                yield Suspicion(loader.place, message, numbers)
            elif together <= MIXED:
                because = f"{together:.0%} of neighbours share a class beyond chance, in {len(passes)} epochs"
                yield Refutation(loader.place, because, numbers)


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
