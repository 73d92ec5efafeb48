"""TA406: softmax or sigmoid output goes into the cross entropy, which applies softmax itself."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Step, Suspicion
from ta_runtime.facts.scores import TOLERANCE

LOOKS = 2
"""Batches of an evaluation whose rows all add up to 1: there is no graph that says what made them, and chance does not repeat."""


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for loss in step.losses:
        scores = loss.scores
        if loss.function != "cross_entropy" or scores is None or not scores.measured:
            continue
        if not scores.are_probabilities:
            yield Refutation(loss.place, scores.evidence)
        elif scores.made_by in ("softmax", "sigmoid"):
            message = f"cross entropy applies softmax to its input, which is already the output of `{scores.made_by}`"
            yield Suspicion(loss.place, message, scores.evidence)


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    """Evaluations, which a step does not show."""
    for evaluated in run.modes.evaluated:
        measured = [scores for scores in evaluated.scores if scores.measured and scores.row_sum is not None]
        others = [scores for scores in measured if not scores.are_probabilities]
        if others:
            yield Refutation(evaluated.place, others[0].evidence)
        elif len(measured) >= LOOKS and all(
            abs((scores.row_sum or 0) - 1) <= TOLERANCE for scores in measured
        ):
            message = "cross entropy applies softmax to its input, whose rows are probabilities already"
            yield Suspicion(evaluated.place, message, measured[0].evidence)
