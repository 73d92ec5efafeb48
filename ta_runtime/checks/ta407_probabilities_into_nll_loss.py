"""TA407: what goes into the negative log likelihood are probabilities or raw scores, where it takes log-probabilities."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion

_NO_LOGARITHMS = ("softmax", "sigmoid", "relu", "tanh", "linear", "convolution")


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for loss in step.losses:
        scores = loss.scores
        if loss.function != "nll_loss" or scores is None or not scores.measured:
            continue
        if scores.may_be_logarithms:
            if scores.made_by not in _NO_LOGARITHMS:
                yield Refutation(loss.place, scores.evidence)
        elif scores.made_by in _NO_LOGARITHMS:
            message = (
                "the negative log likelihood takes log-probabilities and is given "
                f"the output of `{scores.made_by}`"
            )
            yield Suspicion(loss.place, message, scores.evidence)
