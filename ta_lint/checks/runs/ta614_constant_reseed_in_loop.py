"""TA614: a constant seed is set repeatedly, so all passes draw the same random numbers."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = ("*seed*",)
AROUND = (("*backward", "forward", "__getitem__"),)

REPEATS = 3
"""Steps of one optimizer that must start from the same state: two may be a start and a resumption."""


def check_progress(run: Run) -> Iterator[Said]:
    for seeding in run.seedings:
        if len(seeding.values) > 1:
            if seeding.calls >= REPEATS:
                because = f"{seeding.calls} seedings set {len(seeding.values)} seeds"
                evidence = {"seedings": seeding.calls, "seeds": len(seeding.values)}
                yield Refutation(seeding.place, because, evidence)
            continue
        last = seeding.starts[-1][0] if seeding.starts else None
        starts = [(left, found) for optimizer, left, found in seeding.starts if optimizer == last]
        if len(starts) < REPEATS:
            continue
        states = {found for _, found in starts}
        if all(left == found for left, found in starts):
            yield Unobserved(seeding.place, "nothing random was drawn between a seeding and its step")
        elif len(states) == 1:
            message = "each seeding repeats the same random numbers: seed once, before the loop"
            numbers = {"seedings": seeding.calls, "steps that began alike": len(starts)}
            yield Suspicion(seeding.place, message, numbers)
        elif len(states) == len(starts):
            because = f"{len(states)} steps begin from {len(states)} states of the generator"
            evidence = {"seedings": seeding.calls, "different states at the step": len(states)}
            yield Refutation(seeding.place, because, evidence)
