"""TA409: the input of `kl_div` is not the logarithm of probabilities."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Said, Step, Suspicion


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        scores = loss.scores
        if loss.function != "kl_div" or scores is None or scores.are_logarithms is None:
            continue
        if scores.are_logarithms:
            because = f"the largest input is {scores.maximum:.3g}, as of log-probabilities"
            yield Refutation(loss.place, because, scores.evidence)
        else:
            message = f"`kl_div` expects log-probabilities but gets the output of `{scores.made_by}`: use `log_softmax`"
            yield Suspicion(loss.place, message, scores.evidence, shows_elsewhere=True)
