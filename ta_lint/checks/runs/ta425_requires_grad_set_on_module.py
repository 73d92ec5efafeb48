"""TA425: `model.requires_grad = False` sets a plain attribute and freezes nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("requires_grad",)


def check_progress(run: Run) -> Iterator[Said]:
    for flag in run.flags:
        numbers = {"parameters": flag.parameters, "require gradients": flag.learning}
        if flag.value is None or flag.value is not bool(flag.learning):
            message = "`requires_grad` of a module does not reach its parameters: call `requires_grad_()`"
            yield Suspicion(flag.place, message, numbers if flag.parameters else {})
        else:
            because = f"{flag.learning} of its {flag.parameters} parameters require gradients, as it says"
            yield Refutation(flag.place, because, numbers)


def fix(module: "FileFacts", flag: "Site") -> "ProposedFix | None":
    """`model.requires_grad_(False)` in place of the assignment."""
    from ta_lint.facts.attribute_edits import call_instead

    return call_instead(module, flag, "requires_grad_")
