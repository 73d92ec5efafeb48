"""TA605: gradients are clipped while they are still scaled by a gradient scaler."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, Refutation, Run, Said, Suspicion, Unobserved

FEW = 2
"""Correct clippings needed for a refutation."""
SHARE = 0.05
"""A share of the scale: a limit above it was chosen with the scale in mind, as limits are about 1 and scales thousands."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        for place in history.places(Action.CLIP):
            clips = [
                (event.is_scaled, times)
                for pattern, often in history.patterns.items()
                for event, count in pattern
                if (times := often * count)
                and event.action is Action.CLIP
                and event.place == place
                and event.gradients in (Condition.FRESH, Condition.STALE)
            ]
            scaled = sum(times for is_scaled, times in clips if is_scaled)
            plain = sum(times for is_scaled, times in clips if is_scaled is False)
            limit, scale = history.limits.get(place, (0.0, 0.0))
            if scaled and not plain and limit < SHARE * scale:
                message = "gradients are clipped while still scaled: call `scaler.unscale_()` first"
                yield Suspicion(place, message, {"limit": limit, "scale": scale})
            elif plain >= FEW and plain == sum(times for _, times in clips):
                if history.scaler is None:
                    continue
                if not history.scaler:
                    yield Unobserved(place, "the scaler is disabled")
                    continue
                because = f"{plain} clippings come after `unscale_`, none before"
                yield Refutation(place, because, {"clippings": plain, "of scaled gradients": 0})
