"""TA406: softmax or sigmoid output goes into the cross entropy, which applies softmax itself."""

from collections.abc import Iterator

from ta_runtime.facts import Loss, Refutation, Run, Said, Step, Suspicion
from ta_runtime.facts.scores import TOLERANCE

LOOKS = 2
"""Evaluation batches whose rows must all add up to 1: there is no graph that shows their origin."""
AUDITS = 3
"""Audited training steps in a row, if the graph shows no softmax."""


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        scores = loss.scores
        if loss.function != "cross_entropy" or scores is None or not scores.measured:
            continue
        if not scores.are_probabilities:
            because = f"the input has values from {scores.minimum:.3g} to {scores.maximum:.3g}, so no softmax made it"
            yield Refutation(loss.place, because, scores.evidence)
        elif scores.made_by in ("softmax", "sigmoid") or _are_always_probabilities(step, loss):
            what = f"the output of `{scores.made_by}`" if scores.made_by else "probabilities"
            message = f"cross entropy applies softmax again to {what}: give it the logits"
            yield Suspicion(loss.place, message, scores.evidence, shows_elsewhere=True)


def _are_always_probabilities(step: Step, loss: Loss) -> bool:
    """Whether the rows add up to 1 at each audit, from a softmax that is written by hand, averaged or resized.

    Samples of `gumbel_softmax` do so too, on purpose in some communication games: they are not reported.
    """
    scores = loss.scores
    assert scores is not None
    adds_up = scores.row_sum is not None and abs(scores.row_sum - 1) <= TOLERANCE
    return step.history.streak(("TA406", loss.place), adds_up and not scores.are_sampled) >= AUDITS


def check_progress(run: Run) -> Iterator[Said]:
    """Evaluations, which a step does not show."""
    for evaluated in run.modes.evaluated:
        measured = [scores for scores in evaluated.scores if scores.measured and scores.row_sum is not None]
        others = [scores for scores in measured if not scores.are_probabilities]
        if others:
            low, high = others[0].minimum, others[0].maximum
            because = f"the input has values from {low:.3g} to {high:.3g}, so no softmax made it"
            yield Refutation(evaluated.place, because, others[0].evidence)
        elif len(measured) >= LOOKS and all(
            abs((scores.row_sum or 0) - 1) <= TOLERANCE for scores in measured
        ):
            message = "cross entropy applies softmax again to probabilities: give it the logits"
            yield Suspicion(evaluated.place, message, measured[0].evidence, shows_elsewhere=True)
