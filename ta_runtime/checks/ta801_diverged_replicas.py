"""TA801: the ranks that share a model hold different versions of it."""

from collections.abc import Iterator

from ta_runtime.facts import DivergedReplicas, Suspicion


def check_replicas(divergence: DivergedReplicas) -> Iterator[Suspicion]:
    wrapped = divergence.layer is None
    model = "the model that `DistributedDataParallel` wraps" if wrapped else "a model that ranks share"
    evidence: dict[str, float | int | str] = {
        "parameters": divergence.count,
        "of": divergence.total,
        "first": divergence.name,
        "largest difference": divergence.apart,
        "ranks": ",".join(map(str, divergence.ranks)),
    }
    # if the run saw why gradients are not reduced, that is the cause
    yield Suspicion(
        divergence.place,
        f"{model} has other weights on some ranks, which drift apart: load, reduce and clip the same on all",
        evidence,
        cause="diverged replicas",
        order=1,
        related=() if divergence.layer is None else ((divergence.layer, "the first layer that differs"),),
    )
