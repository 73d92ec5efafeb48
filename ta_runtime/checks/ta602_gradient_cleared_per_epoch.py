"""TA602: gradients are rarely cleared, so most steps also follow the gradients of earlier steps."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.checks.ta600_missing_zero_grad import FEW, cleared, is_stale
from ta_runtime.facts import Condition, Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            found = history.steps(place)
            stale, fresh = found[Condition.STALE], found[Condition.FRESH]
            if is_stale(history) and is_cleared and stale >= FEW and stale > fresh:
                message = "most steps also use gradients of earlier steps: call `zero_grad()` for each step"
                yield Suspicion(
                    place, message, {"steps on old gradients": stale, "on cleared gradients": fresh}
                )
            elif (refutation := cleared(history, place)) is not None:
                yield refutation
