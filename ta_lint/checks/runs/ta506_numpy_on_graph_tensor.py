"""TA506: a tensor that requires a gradient is converted to an array, which raises."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ((".numpy(", ".asarray(", ".array("),)


def check_progress(run: Run) -> Iterator[Said]:
    for converted in run.converted:
        message = f"`{converted.code}` raises, as the tensor requires a gradient: call `detach()` first"
        yield Suspicion(converted.place, message)


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Detach it first."""
    from ta_lint.facts.graph_edits import detach_before

    return detach_before(module, call)
