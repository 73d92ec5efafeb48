"""TA328: each rank drew its own split, so one trains on what another evaluates."""

from collections.abc import Iterator

from ta_runtime.facts import DataShare, Refutation, Run, Said, Suspicion, Unobserved

SHARE = 0.01
"""Of the samples that a rank evaluates."""


def check_run(run: Run) -> Iterator[Said]:
    own = run.told.parts
    for loader, part in zip(run.loaders, own, strict=False):
        if part is None or not part.evaluates or _shared(part, own):
            continue
        place = loader.split_at or loader.place
        if not run.peers:
            yield Unobserved(place, "the run has one rank")
            continue
        leaks = {rank: _shared(part, told.parts) for rank, told in sorted(run.peers.items())}
        worst = max(leaks, key=lambda rank: leaks[rank])
        count = part.numbers.bit_count()
        numbers = {"samples evaluated": count, "trained on by another rank": leaks[worst], "rank": worst}
        if leaks[worst] > SHARE * count:
            message = (
                "one rank trains on samples that another evaluates: split with a generator of the same seed"
            )
            yield Suspicion(place, message, numbers, related=((loader.place, "the loader that evaluates"),))
        elif all(any(other == part for other in told.parts) for told in run.peers.values()):
            because = f"{len(run.peers) + 1} ranks draw from equal parts, {count} samples evaluated"
            yield Refutation(place, because, numbers)


def _shared(evaluated: DataShare, parts: list[DataShare | None]) -> int:
    """How many samples of a part loaders train on that draw from the same data set."""
    training = [
        part.numbers for part in parts if part is not None and part.trains and part.length == evaluated.length
    ]
    return max(((evaluated.numbers & numbers).bit_count() for numbers in training), default=0)
