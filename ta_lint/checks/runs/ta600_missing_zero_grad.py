"""TA600: each optimizer step follows the sum of all gradients so far, because nothing ever clears them."""

from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = stepping.KEYWORDS
AROUND = stepping.AROUND
fix = stepping.fix


def check_progress(run: Run) -> Iterator[Said]:
    told: set[Place] = set()
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            stale = history.steps(place)[Condition.STALE]
            if stepping.is_stale(history) and stale >= stepping.FEW and not is_cleared:
                if history.loop is None or history.loop not in told:  # one message for a loop
                    message = "gradients are never cleared, so each step uses the sum of all so far: call `zero_grad()`"
                    related = stepping.around(history)
                    yield Suspicion(place, message, {"steps on old gradients": stale}, related=related)
                told.update(one for one in (history.loop,) if one is not None)
                break  # one call of `zero_grad` serves all steps of an optimizer
            if (refutation := stepping.cleared(history, place)) is not None:
                yield refutation
