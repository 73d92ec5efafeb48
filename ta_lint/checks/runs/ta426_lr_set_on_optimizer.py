"""TA426: `optimizer.lr = x` sets a plain attribute and does not change the learning rate."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("lr", "learning_rate"),)
AROUND = ("optim",)


def check_progress(run: Run) -> Iterator[Suspicion]:
    for rate in run.rates:
        message = f"`{rate.code}` does not set the learning rate: set it in `param_groups`"
        yield Suspicion(rate.place, message)


def fix(module: "FileFacts", rate: "Site") -> "ProposedFix | None":
    """Set the rate of each group."""
    from ta_lint.facts.attribute_edits import set_in_groups

    return set_in_groups(module, rate)
