"""TA602: gradients are rarely cleared, so most steps also follow the gradients of earlier steps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.checks.runs.ta600_missing_zero_grad import FEW, around, cleared, is_stale
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, LoopHistory
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ((".step(", ".step,", ".step}", ".step)", ".step]"),)
AROUND = ("*backward",)


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            found = history.steps(place)
            stale, fresh = found[Condition.STALE], found[Condition.FRESH]
            if is_stale(history) and is_cleared and stale >= FEW and stale > fresh:
                message = "most steps also use gradients of earlier steps: call `zero_grad()` for each step"
                evidence = {"steps on old gradients": stale, "on cleared gradients": fresh}
                yield Suspicion(place, message, evidence, related=around(history))
            elif not _has_several_steps(history, place):
                yield Unobserved(place, "each epoch is one step")
            elif (refutation := cleared(history, place)) is not None:
                yield refutation


def _has_several_steps(history: LoopHistory, place: Place) -> bool:
    """Whether an epoch has a second step, which gradients of its first could reach; True where no loader tells."""
    patterns = [pattern for pattern, _, _ in history.ending(place) if pattern != history.first]
    return not patterns or not all(
        any(event.action is Action.EPOCH for event, _ in pattern) for pattern in patterns
    )


def fix(module: "FileFacts", step: "Site") -> "ProposedFix | None":
    """Clear the gradients at the start of each pass, and not outside of the loop."""
    from ta_lint.facts.clear_first import clear_first

    return clear_first(module, step)
