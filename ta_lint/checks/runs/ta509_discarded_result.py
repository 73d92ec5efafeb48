"""TA509: the result of a tensor operation that is not in-place is discarded."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.discards import GIVE_ANOTHER
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (tuple(f"{name}();" for name in sorted(GIVE_ANOTHER)),)


def check_run(run: Run) -> Iterator[Said]:
    for discard in run.discards:
        yield Suspicion(discard.place, f"`{discard.code}` leaves `{discard.of}` unchanged: assign its result")


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Assign the result to the tensor that it is made of."""
    from ta_lint.facts.result_edits import keep_result

    return keep_result(module, call)
