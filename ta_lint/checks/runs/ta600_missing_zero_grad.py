"""TA600: each optimizer step follows the sum of all gradients so far, because nothing ever clears them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, LoopHistory
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ((".step(", ".step,", ".step}", ".step)", ".step]"),)
AROUND = ("*backward",)

FEW = 3
"""Steps on gradients of earlier steps needed for a finding: two may be one iteration that steps twice."""


def check_progress(run: Run) -> Iterator[Said]:
    said: set[Place | None] = set()
    for history in run.loop.histories:
        is_cleared = any(event.action is Action.CLEAR for pattern in history.patterns for event, _ in pattern)
        for place in history.places(Action.STEP):
            found = history.steps(place)
            if is_stale(history) and found[Condition.STALE] >= FEW and not is_cleared:
                if history.loop in said and history.loop is not None:
                    break  # one message for a loop
                said.add(history.loop)
                message = (
                    "gradients are never cleared, so each step uses the sum of all so far: call `zero_grad()`"
                )
                evidence = {"steps on old gradients": found[Condition.STALE]}
                yield Suspicion(place, message, evidence, related=around(history))
                break  # one call of `zero_grad` serves all steps of an optimizer
            elif (refutation := cleared(history, place)) is not None:
                yield refutation


def around(history: LoopHistory) -> tuple[tuple[Place, str], ...]:
    """The loop, as a related place."""
    return () if history.loop is None else ((history.loop, "the loop"),)


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


def fix(module: "FileFacts", step: "Site") -> "ProposedFix | None":
    """Clear the gradients at the start of each pass."""
    from ta_lint.facts.clear_first import clear_first

    return clear_first(module, step)
