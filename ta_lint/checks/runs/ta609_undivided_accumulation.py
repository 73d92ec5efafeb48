"""TA609: gradients of several batches are accumulated, but the mean losses are not divided by their number."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("*backward",)
AROUND = (
    "step",
    ("%", "range"),
)

_FEW = 2
"""Steps for several batches needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    for one in run.accumulations:
        numbers = {"batches to a step": one.batches or "not known"}
        if one.whole >= _FEW and not one.divided:
            message = "gradients of several batches are summed and too large: divide the loss by their number"
            evidence = {**numbers, "loss divided by": 1}
            yield Suspicion(one.place, message, evidence, related=one.related, is_note=one.is_normalised)
        elif one.divided and not one.whole:
            because = f"the loss is divided by the {one.batches} batches to a step"
            yield Refutation(one.place, because, {**numbers, "loss divided by": one.batches or 1})


def fix(module: "FileFacts", backward: "Site") -> "ProposedFix | None":
    """Divide the loss only in the backward pass, so that a loss logged later keeps its value."""
    from ta_lint.facts.division_edits import by_accumulated

    return by_accumulated(module, backward)
