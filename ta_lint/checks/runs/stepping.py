"""What the checks of optimizer steps share: what files the linter looks at, steps on old gradients, and the fix."""

from typing import TYPE_CHECKING

from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, LoopHistory
from ta_lint.events.place import Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ((".step(", ".step,", ".step}", ".step)", ".step]"),)
AROUND = ("*backward",)

FEW = 3
"""Steps on gradients of earlier steps needed for a finding: two may be one iteration that steps twice."""


def around(history: LoopHistory) -> tuple[tuple[Place, str], ...]:
    """The loop, as a related place."""
    return () if history.loop is None else ((history.loop, "the loop"),)


def everywhere(run: Run, action: Action) -> tuple[Place, ...]:
    """The lines that take an action, whatever optimizer it is for."""
    return tuple(dict.fromkeys(place for one in run.loop.histories for place in one.places(action)))


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
    """Clear the gradients at the start of each pass, with a misplaced statement or a new one."""
    from ta_lint.facts.step_edits import clear_first

    return clear_first(module, step)


def clear_earlier(module: "FileFacts", clear: "Site") -> "ProposedFix | None":
    """Clear the gradients before the backward pass whose gradients are lost."""
    from ta_lint.facts.step_edits import clear_earlier

    return clear_earlier(module, clear)


def clip_between(module: "FileFacts", clip: "Site") -> "ProposedFix | None":
    """Clip after the backward pass and before the step."""
    from ta_lint.facts.step_edits import clip_between

    return clip_between(module, clip)
