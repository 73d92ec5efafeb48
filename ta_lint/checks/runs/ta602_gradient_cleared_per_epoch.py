"""TA602: gradients are rarely cleared, so most steps also follow the gradients of earlier steps."""

from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, LoopHistory
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion, Unobserved

KEYWORDS = stepping.KEYWORDS
AROUND = stepping.AROUND
fix = stepping.fix


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            found = history.steps(place)
            stale, fresh = found[Condition.STALE], found[Condition.FRESH]
            if stepping.is_stale(history) and is_cleared and stale >= stepping.FEW and stale > fresh:
                message = "most steps also use gradients of earlier steps: call `zero_grad()` for each step"
                evidence = {"steps on old gradients": stale, "on cleared gradients": fresh}
                yield Suspicion(place, message, evidence, related=stepping.around(history))
            elif not _has_several_steps(history, place):
                yield Unobserved(place, "each epoch is one step")
            elif (refutation := stepping.cleared(history, place)) is not None:
                yield refutation


def _has_several_steps(history: LoopHistory, place: Place) -> bool:
    """Whether an epoch has a second step, which gradients of its first could reach; True where no loader tells."""
    patterns = [pattern for pattern, _, _ in history.ending(place) if pattern != history.first]
    return not patterns or not all(
        any(event.action is Action.EPOCH for event, _ in pattern) for pattern in patterns
    )
