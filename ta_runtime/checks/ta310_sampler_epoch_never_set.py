"""TA310: a `DistributedSampler` without `set_epoch` shuffles every epoch in the same way."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        shuffled = [each.shuffled_by for each in loader.training_passes if each.shuffled_by is not None]
        if len(shuffled) < 2 or (loader.samples or 0) < 2:
            if shuffled:
                yield Unobserved(loader.place, "fewer than two epochs began")
            continue
        orders = set(shuffled)
        if len(orders) == 1:
            message = (
                "the `DistributedSampler` of this loader shuffled every epoch the same way: call `set_epoch`"
            )
            yield Suspicion(loader.place, message, {"epochs": len(shuffled), "epoch set": shuffled[0][1]})
        else:
            because = f"{len(shuffled)} epochs have {len(orders)} orders"
            yield Refutation(loader.place, because, {"epochs": len(shuffled), "orders": len(orders)})


def check_run(run: Run) -> Iterator[Suspicion]:
    for number, loader in enumerate(run.loaders):
        orders = {rank: told.orders[number] for rank, told in run.peers.items() if number < len(told.orders)}
        own = run.told.orders[number] if loader.trained and orders else []
        strange = [rank for rank, other in sorted(orders.items()) if _part(own, other)]
        if strange:
            message = "ranks train on the same samples: give each sampler the same seed and call `set_epoch`"
            listed = ",".join(map(str, [run.rank, *strange]))
            yield Suspicion(loader.place, message, {"passes": len(own), "ranks": listed}, variant="ranks")


def _part(own: list[tuple[int, int] | None], other: list[tuple[int, int] | None]) -> bool:
    """Whether two ranks that took equally many passes shuffled one of them in different ways."""
    pairs = zip(own, other, strict=False)
    return len(own) == len(other) and any(one != two for one, two in pairs if one and two)
