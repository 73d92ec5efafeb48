"""TA408: `BCEWithLogitsLoss` gets probabilities, or `BCELoss` gets something else."""

from collections.abc import Iterator

from ta_runtime.facts import Loss, Refutation, Said, Scores, Step, Suspicion

_PROBABILITIES = ("softmax", "sigmoid")
_NONE = ("relu", "tanh", "linear", "convolution", "log_softmax", "logsigmoid", "log")


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        if loss.scores is not None and loss.scores.measured:
            if loss.function == "binary_cross_entropy_with_logits":
                yield from _of_scores(loss, loss.scores)
            elif loss.function == "binary_cross_entropy":
                yield from _of_probabilities(loss, loss.scores)


def _of_scores(loss: Loss, given: Scores) -> Iterator[Said]:
    if not given.are_probabilities:
        because = (
            f"the input has values from {given.minimum:.3g} to {given.maximum:.3g}, so no sigmoid made it"
        )
        yield Refutation(loss.place, because, given.evidence)
    elif given.made_by in _PROBABILITIES:
        message = f"`{loss.function}` applies sigmoid on top of `{given.made_by}`: give it the logits"
        yield Suspicion(loss.place, message, given.evidence, shows_elsewhere=True)


def _of_probabilities(loss: Loss, given: Scores) -> Iterator[Said]:
    """Raw scores that happen to be between 0 and 1 decide nothing: they may leave the range later."""
    if given.are_probabilities:
        if given.made_by not in _NONE:
            because = (
                f"the input has values from {given.minimum:.3g} to {given.maximum:.3g}, all probabilities"
            )
            of_data = given.made_by not in _PROBABILITIES
            yield Refutation(loss.place, because, given.evidence, of_data=of_data)
    elif given.made_by in _NONE:
        message = f"`{loss.function}` expects probabilities but gets the output of `{given.made_by}`: apply `sigmoid` first"
        yield Suspicion(loss.place, message, given.evidence, shows_elsewhere=True)
