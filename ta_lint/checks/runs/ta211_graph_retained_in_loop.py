"""TA211: `backward(retain_graph=True)` where each pass builds a new graph and uses it once."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("retain_graph",)
AROUND = ("*backward",)


def check_progress(run: Run) -> Iterator[Said]:
    for retained in run.retained:
        if not retained.is_used_again:
            message = f"`{retained.code}` keeps a graph that is not used again: leave `retain_graph` out"
            yield Suspicion(
                retained.place, message, related=((retained.loop, "each pass builds its graph anew"),)
            )


def fix(module: "FileFacts", backward: "Site") -> "ProposedFix | None":
    """Leave the argument out."""
    from ta_lint.syntax.edits import ProposedFix, remove_argument

    call = module.call_at(backward)
    arguments = () if call is None else call.args
    kept = next((one for one in arguments if one.keyword and one.keyword.value == "retain_graph"), None)
    return ProposedFix("let the graph go", (remove_argument(call, kept),)) if call and kept else None
