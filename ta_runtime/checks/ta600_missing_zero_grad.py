"""TA600: each optimizer step follows the sum of all gradients so far, because nothing ever clears them."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, LoopHistory, Refutation, Run, Said, Suspicion
from ta_runtime.probes.places import Place

FEW = 3
"""Steps on gradients of earlier steps needed for a finding: two may be one iteration that steps twice."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            found = history.steps(place)
            if is_stale(history) and found[Condition.STALE] >= FEW and not is_cleared:
                message = (
                    "gradients are never cleared, so each step uses the sum of all so far: call `zero_grad()`"
                )
                yield Suspicion(place, message, {"steps on old gradients": found[Condition.STALE]})
            elif (refutation := cleared(history, place)) is not None:
                yield refutation


def is_stale(history: LoopHistory) -> bool:
    """Whether gradients that no call had cleared were measured, and were never zero."""
    return history.kept > 0 and history.emptied == 0


def cleared(history: LoopHistory, place: Place) -> Refutation | None:
    """The refutation for a place where each step found cleared gradients."""
    found = history.steps(place)
    if found[Condition.FRESH] >= 2 and not found[Condition.STALE]:
        because = (
            f"{found[Condition.FRESH]} of {found.total()} steps found cleared gradients, and none old ones"
        )
        numbers = {"steps": found.total(), "on cleared gradients": found[Condition.FRESH]}
        return Refutation(place, because, numbers)
    return None
