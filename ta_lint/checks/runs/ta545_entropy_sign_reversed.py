"""TA545: the loss of a policy grows with its entropy, which punishes exploration. Only the source shows what a loss adds up."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.summands import PolicyTerm
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("entropy", "entr", "log", "log_softmax"),)
AROUND = (
    ("log_prob", "gather", "softmax", "log_softmax"),
    ("*backward", "training_step", "log_prob", "*reward*", "*advantage*", "*action*"),
)


def check_run(run: Run) -> Iterator[Said]:
    for loss in run.sums:
        if not any(term.kind is PolicyTerm.OF_POLICY for term in loss.summands):
            continue
        for term in loss.summands:
            if term.raises > 0 and term.kind is PolicyTerm.NEGATIVE_ENTROPY:
                message = (
                    "this is the entropy without its minus, so the loss punishes exploration: add the minus"
                )
                yield Suspicion(term.place, message, related=((term.added, "the term of the loss"),))
            elif term.raises > 0:
                message = (
                    f"`{term.code}` adds the entropy to the loss, which punishes exploration: subtract it"
                )
                yield Suspicion(term.added, message)


def fix(module: "FileFacts", entropy: "Site") -> "ProposedFix | None":
    """Put the minus before the sum of `p * log_p`."""
    from ta_lint.facts.graph_edits import negate

    return negate(module, entropy)
