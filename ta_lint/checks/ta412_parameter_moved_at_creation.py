"""TA412: `nn.Parameter(t).to(device)` is a tensor computed from a parameter, not a parameter."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("Parameter", ("bfloat16", "cpu", "cuda", "double", "float", "half", "to", "type", "type_as"))
ALONG = True


def check_run(run: Run) -> Iterator[Said]:
    for lost in run.parameters_lost:
        message = f"the parameter becomes a plain tensor and never trains: call `.{lost.method}()` inside `nn.Parameter(...)`"
        yield Suspicion(lost.place, message)


def fix(module: "FileFacts", moved: "Site") -> "ProposedFix | None":
    """Move the tensor before it becomes a parameter, if it does so in the same expression."""
    from ta_lint.facts.result_edits import call_inside

    return call_inside(module, moved, "torch.nn.Parameter")
