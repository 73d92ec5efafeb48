"""TA600: an optimizer steps along the sum of all gradients so far, as nothing ever clears them."""

from collections.abc import Iterator

from ta_runtime.facts import Action, Condition, Refutation, Rounds, Run, Suspicion
from ta_runtime.places import Place

FEW = 3
"""Steps on gradients of earlier steps before it is said: two may be one pass of a loop that steps twice."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for rounds in run.loop.rounds:
        is_cleared = any(event.action is Action.CLEAR for way in rounds.ways for event, _ in way)
        for place in rounds.places(Action.STEP):
            found = rounds.steps(place)
            if is_stale(rounds) and found[Condition.STALE] >= FEW and not is_cleared:
                message = "the optimizer steps along the sum of all gradients so far, as nothing clears them"
                yield Suspicion(place, message, {"steps on old gradients": found[Condition.STALE]})
            elif (refutation := cleared(rounds, place)) is not None:
                yield refutation


def is_stale(rounds: Rounds) -> bool:
    """Whether gradients that seemed not to have been cleared were measured, and never were zero."""
    return rounds.kept > 0 and rounds.emptied == 0


def cleared(rounds: Rounds, place: Place) -> Refutation | None:
    """That the gradients were cleared before each step at a place."""
    found = rounds.steps(place)
    if found[Condition.FRESH] >= 2 and not found[Condition.STALE]:
        return Refutation(place, {"steps": found.total(), "on cleared gradients": found[Condition.FRESH]})
    return None
