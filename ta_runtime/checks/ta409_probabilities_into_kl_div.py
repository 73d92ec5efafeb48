"""TA409: the input of `kl_div` is not the logarithm of probabilities."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for loss in step.losses:
        scores = loss.scores
        if loss.function != "kl_div" or scores is None or scores.are_logarithms is None:
            continue
        if scores.are_logarithms:
            yield Refutation(loss.place, scores.evidence)
        else:
            message = f"`kl_div` expects log-probabilities but gets the output of `{scores.made_by}`: use `log_softmax`"
            yield Suspicion(loss.place, message, scores.evidence)
