"""TA436: averages in half precision no longer move, although they should follow other values."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

FEW = 2
"""Looks at averages that a verdict needs."""
ENOUGH = 16
"""Elements that should have moved: of fewer a share says little."""
STUCK, MOVES = 0.1, 0.5
"""Of the elements that differ from the new values, the share that moves: of one that rounds away nearly none does."""


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.slow_averages:
        if found.looks < FEW:
            if found.precise and not found.dtype:
                because = f"all {found.precise} averages have more than half precision"
                numbers = {"averages of more than half precision": found.precise}
                yield Refutation(found.place, because, numbers)
            continue
        if found.differing < ENOUGH:
            yield Unobserved(found.place, "the averages hardly differ from the weights that they follow")
            continue
        share = found.moved / found.differing
        evidence = {"share of elements that move": round(share, 3), "decay": found.decay}
        if share <= STUCK:
            message = f"the averaged weights never change, as updates round away in {found.dtype}: keep them in float32"
            yield Suspicion(found.place, message, evidence)
        elif share >= MOVES:
            because = f"{share:.0%} of the elements that should move do"
            yield Refutation(found.place, because, evidence, of_data=True)
