"""TA406: softmax or sigmoid output goes into the cross entropy, which applies softmax itself."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion


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
