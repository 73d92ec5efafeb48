"""TA626: an optimizer stepped again with gradients that its last step had used."""

from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = stepping.KEYWORDS
AROUND = stepping.AROUND

FEW = 2
"""Steps needed for a finding: an extra one at the end of a training is not a pattern."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        if not history.places(Action.BACKWARD):
            continue  # nothing computes gradients here: who calls it may do so
        for place in history.places(Action.STEP):
            found = [(step, times, len(pattern)) for pattern, step, times in history.ending(place)]
            used = sum(times for step, times, _ in found if step.gradients is Condition.USED)
            fresh = sum(times for step, times, _ in found if step.gradients is Condition.FRESH)
            if used >= FEW and used > fresh:
                message = "the optimizer uses the same gradients for two steps: step once per backward pass"
                yield Suspicion(place, message, {"steps": used, "along new gradients": fresh})
            elif fresh >= FEW and not used:
                because = f"all {fresh} steps use new gradients"
                yield Refutation(place, because, {"steps along new gradients": fresh})
