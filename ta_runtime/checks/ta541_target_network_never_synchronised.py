"""TA541: a target network, or an old policy, is built and never copied from the network that learns."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

STEPS = 1000
"""Steps in which a target stays bit for bit what it was. Targets that are copied whole are so every 100 to 1,000 updates in what
people write, and every 10,000 in the paper, whose runs are of millions."""
LOOKS = 2


def check_run(run: Run) -> Iterator[Said]:
    for target in run.targets:
        numbers = {"steps": target.steps, "looks": target.looks, "moves": target.moves}
        if target.moves:
            because = f"the target moved {target.moves} times in {target.steps} steps"
            yield Refutation(target.place, because, numbers)
        elif run.over and target.steps >= STEPS and target.looks >= LOOKS:
            yield Suspicion(
                target.place,
                "the target network never follows the learning one: copy the weights over every few steps",
                numbers,
            )
        elif run.over:
            yield Unobserved(
                target.place, f"{target.steps} steps, fewer than the {STEPS} within which a target may stay"
            )
