"""TA616: the state restored or saved as the best is the model's own, and further training has changed it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("state_dict", ("load_state_dict", "*save*", "return"))


def check_progress(run: Run) -> Iterator[Said]:
    for kept in run.kept:
        steps = kept.steps
        evidence = (
            {}
            if steps is None
            else {
                "kept at step": steps[0],
                "used at step": steps[1],
                "tensors": kept.tensors,
                "shared with the model": kept.shared,
            }
        )
        if kept.shared:
            message = "the state kept here changes with training before it is used: keep a `deepcopy` of it"
            yield Suspicion(kept.place, message, evidence, related=((kept.used, "it is used here"),))
        elif steps is not None:
            because = f"none of {kept.tensors} tensors kept at step {steps[0]} is the model's own"
            yield Refutation(kept.place, because, evidence)


def fix(module: "FileFacts", state: "Site") -> "ProposedFix | None":
    """A deep copy of the state."""
    from ta_lint.facts.copied import copied

    return copied(module, state)
