"""TA605: gradients are clipped while they are still scaled by a gradient scaler."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("*clip*", "*clamp*"),)
AROUND = (("scale", "accelerate", "*fabric*", "*scaler*"), "step")

FEW = 2
"""Correct clippings needed for a refutation."""
SHARE = 0.05
"""A share of the scale: a limit above it was chosen with the scale in mind, as limits are about 1 and scales thousands."""


def check_progress(run: Run) -> Iterator[Said]:
    for history in run.loop.histories:
        for place in history.places(Action.CLIP):
            clips = [
                (event, often * count)
                for pattern, often in history.patterns.items()
                for event, count in pattern
                if (event.action, event.place) == (Action.CLIP, place)
                and event.gradients not in (Condition.USED, Condition.EMPTY)
            ]
            scaled = any(event.is_scaled for event, _ in clips)
            plain = sum(
                times
                for event, times in clips
                if event.is_scaled is False and event.gradients is not Condition.UNKNOWN
            )
            limit, scale = history.limits.get(place, (0.0, 0.0))
            if scaled and not plain and (limit is None or limit < SHARE * scale):
                message = "gradients are clipped while still scaled: unscale them first"
                numbers = {"limit": limit, "scale": scale} if limit is not None else {}
                yield Suspicion(place, message, numbers)
            elif plain >= FEW and plain == sum(times for _, times in clips) and history.scaler is not None:
                if not history.scaler:
                    yield Unobserved(place, "the scaler is disabled")
                    continue
                because = f"{plain} clippings come after `unscale_`, none before"
                yield Refutation(place, because, {"clippings": plain, "of scaled gradients": 0})


def fix(module: "FileFacts", clip: "Site") -> "ProposedFix | None":
    """Unscale before the clipping, or let Accelerate clip, which does so itself."""
    from ta_lint.facts.step_edits import unscale_before

    return unscale_before(module, clip)
