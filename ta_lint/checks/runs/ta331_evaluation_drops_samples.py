"""TA331: an evaluation loader leaves out the samples of its last batch."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("DataLoader", "drop_last")


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if not loader.drop_last or (loader.is_measured and not loader.samples):
            continue
        left_out = "not known" if loader.left_out is None else loader.left_out
        numbers = {"samples": loader.samples or "not known", "left out": left_out}
        if loader.trained or loader.left_out == 0:
            because = (
                f"its batches are trained on in {loader.trained} steps"
                if loader.trained
                else f"batches of {loader.batch_size} leave out none of {loader.samples} samples"
            )
            yield Refutation(loader.place, because, {**numbers, "steps of training": loader.trained})
        elif loader.evaluates and (any(each.ended for each in loader.passes) or not loader.is_measured):
            message = "`drop_last=True` leaves the last batch out of the evaluation: set it to `False`"
            yield Suspicion(loader.place, message, numbers)


def fix(module: "FileFacts", loader: "Site") -> "ProposedFix | None":
    """Keep the last batch."""
    from ta_lint.facts.loader_edits import keep_last

    return keep_last(module, loader)
