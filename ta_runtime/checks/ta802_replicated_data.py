"""TA802: the ranks that share a model train on the same samples."""

from collections.abc import Iterator

from ta_runtime.facts import Drawn, Refutation, Run, Said, Suspicion

SHARE = 0.5
"""Of a rank's samples. Ranks that split the data share none, except for a few that pad the last batch."""
SAMPLES = 8
"""Samples to compare."""
DISTINCT = 0.9
"""Of the samples of one rank among themselves: where samples are often equal, ranks may have equal ones as well."""


def check_run(run: Run) -> Iterator[Said]:
    if not run.data_parallel or not run.peers:
        return
    for number, (loader, own) in enumerate(zip(run.loaders, run.told.samples, strict=True)):
        others = {
            rank: told.samples[number] for rank, told in run.peers.items() if number < len(told.samples)
        }
        if not loader.trained or loader.divides or not all(map(_tells, (own, *others.values()))):
            continue
        shared = {rank: len(own.hashes & other.hashes) for rank, other in others.items()}
        most = max(shared.values(), default=0)
        evidence: dict[str, float | int | str] = {"samples": own.count, "shared with another rank": most}
        if most >= SHARE * len(own.hashes):
            strange = [rank for rank, count in shared.items() if count >= SHARE * len(own.hashes)]
            evidence["ranks"] = ",".join(map(str, [run.rank, *sorted(strange)]))
            message = "ranks train on the same samples: give this loader a `DistributedSampler`"
            yield Suspicion(loader.place, message, evidence)
        elif shared and not most and own.whole and all(other.whole for other in others.values()):
            because = f"none of {own.count} samples is one of another rank"
            yield Refutation(loader.place, because, evidence)


def _tells(drawn: Drawn) -> bool:
    return drawn.count >= SAMPLES and len(drawn.hashes) >= DISTINCT * drawn.count
