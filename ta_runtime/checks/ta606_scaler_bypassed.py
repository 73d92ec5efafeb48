"""TA606: an optimizer steps on scaled gradients without the scaler, or the scaler is never updated."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, Refutation, Run, Said, Suspicion, Unobserved

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
                if step.gradients in (Condition.FRESH, Condition.STALE)
            ]
            scaled = sum(times for step, times in steps if step.is_scaled and not step.by_scaler)
            scaler = sum(times for step, times in steps if step.by_scaler)
            plain = sum(times for step, times in steps if step.is_scaled is False and not step.by_scaler)
            if scaled >= FEW:
                message = "the optimizer uses gradients that are still scaled: call `scaler.step(optimizer)`"
                yield Suspicion(
                    place, message, {"steps on scaled gradients": scaled, "by the scaler": scaler}
                )
            elif scaler + plain >= FEW and scaler + plain == sum(times for _, times in steps):
                if history.scaler is None:
                    continue
                if not history.scaler:
                    yield Unobserved(place, "the scaler is disabled")
                    continue
                because = (
                    f"of {scaler + plain} steps the scaler makes {scaler}, and none uses scaled gradients"
                )
                numbers = {"steps": scaler + plain, "on scaled gradients": 0, "by a scaler": scaler}
                yield Refutation(place, because, numbers)
