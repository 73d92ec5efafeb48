"""TA522: a term of a loss has lost its gradient, so it trains nothing. Only the source shows what a loss adds up."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.graph import Lost
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (
    (
        "detach",
        "detach_",
        "item",
        "data",
        "float",
        "numpy",
        "tolist",
        "tensor",
        "argmax",
        "argmin",
        "argsort",
        "grad",
    ),
)
AROUND = (("*backward", "training_step"),)

_REPAIRS = {
    Lost.DETACHED: "cuts its gradient: remove the call",
    Lost.FIRST_ORDER: "keeps no graph: set `create_graph=True`",
    Lost.STEPPED: "has none: use a smooth function",
}


def check_run(run: Run) -> Iterator[Said]:
    for loss in run.sums:
        for term in loss.summands:
            if term.cut is not None:
                repair = _REPAIRS[term.cut.how]
                message = f"`{term.code}` is in the loss but trains nothing, as `{term.cut.code}` {repair}"
                yield Suspicion(term.cut.place, message, related=((term.added, "the term of the loss"),))


def fix(module: "FileFacts", cut: "Site") -> "ProposedFix | None":
    """Keep the gradient."""
    from ta_lint.facts.graph_edits import keep_gradient

    return keep_gradient(module, cut)
