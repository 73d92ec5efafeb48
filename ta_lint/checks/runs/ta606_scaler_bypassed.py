"""TA606: an optimizer steps without the scaler that has scaled its loss, or the scaler is never updated."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = stepping.KEYWORDS
AROUND = (("scale", "*scaler*", "accelerate", "*fabric*"), "*backward")

FEW = 2
"""Steps needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        if history.without_update is not None:
            message = "the second `scaler.step` raises an error: call `scaler.update()` after each step"
            yield Suspicion(history.without_update, message, {"updates between two steps": 0})
        for place in history.places(Action.STEP):
            steps = [
                (step, times)
                for _, step, times in history.ending(place)
                if step.gradients not in (Condition.USED, Condition.EMPTY)
            ]
            by_scaler = sum(times for step, times in steps if step.by_scaler)
            past = sum(
                times
                for step, times in steps
                if not step.by_scaler and (step.is_scaled or step.is_chosen is False)
            )
            plain = sum(
                times
                for step, times in steps
                if step.is_scaled is False and not step.by_scaler and step.gradients is not Condition.UNKNOWN
            )
            if past >= FEW:
                message = "the loss is scaled, and the optimizer steps without the scaler: call `scaler.step(optimizer)`"
                numbers = {"steps past the scaler": past, "by the scaler": by_scaler}
                yield Suspicion(place, message, numbers)
            elif by_scaler + plain >= FEW and by_scaler + plain == sum(times for _, times in steps):
                if history.scaler is None:
                    continue
                if not history.scaler:
                    yield Unobserved(place, "the scaler is disabled")
                    continue
                because = f"of {by_scaler + plain} steps the scaler makes {by_scaler}, and none uses scaled gradients"
                numbers = {"steps": by_scaler + plain, "on scaled gradients": 0, "by a scaler": by_scaler}
                yield Refutation(place, because, numbers)


def fix(module: "FileFacts", step: "Site") -> "ProposedFix | None":
    """Step through the scaler, or update it after its step."""
    from ta_lint.facts.step_edits import step_by_scaler

    return step_by_scaler(module, step)
