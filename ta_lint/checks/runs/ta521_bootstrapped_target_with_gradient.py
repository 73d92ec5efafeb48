"""TA521: a value's target comes from the network that learns it, and a gradient flows into the target too.

A run looks at the differences of each step, the source at all of them together.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ta_lint.events.residuals import Residual
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("*mse*", "*huber*", "*smooth*", "square", "pow", "**"),)
AROUND = (("*backward", "training_step"),)


class HasResiduals(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    residuals: list[Residual]


def check_step(step: HasResiduals) -> Iterator[Said]:
    for residual in step.residuals:
        if residual.shared:
            message = "this loss also trains the network through its own target: detach the target"
            numbers = {"weights behind both sides": residual.shared}
            related = ((residual.place, "the loss"),) if residual.target else ()
            yield Suspicion(
                residual.target or residual.place, message, numbers, related=related, shows_elsewhere=True
            )
        else:
            numbers = {"weights behind the target": 0}
            because = "no weight behind the prediction is behind its target"
            yield Refutation(residual.place, because, numbers, rests_on=Sight.GRADIENTS)


def fix(module: "FileFacts", target: "Site") -> "ProposedFix | None":
    """Detach the scaled output."""
    from ta_lint.facts.graph_edits import detach_term

    return detach_term(module, target)
