"""TA523: softmax over the batch or over time: the scores for a loss do not add up to 1 over the classes."""

from collections.abc import Iterator

from ta_runtime.facts import Loss, Refutation, Said, Step, Suspicion

FAR = 0.05
"""How far from 1 the sum over the classes may be: more than half precision rounds."""


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        total = _total(loss)
        if total is None or loss.scores is None:
            continue
        if abs(total - 1) <= FAR:
            because = f"the probabilities add up to {total:.3g} over the classes"
            yield Refutation(loss.place, because, loss.scores.evidence)
        else:
            message = f"`{loss.scores.made_by}` does not run over the classes and mixes samples or positions: set `dim` to the classes"
            yield Suspicion(loss.place, message, loss.scores.evidence, shows_elsewhere=True)


def _total(loss: Loss) -> float | None:
    """The sum of the probabilities over the classes, of a loss whose input is all that a softmax gave out; None of others.

    A table with as many rows as classes may hold each sample against each other, either way.
    """
    scores, shape = loss.scores, loss.input.shape
    of_classes = loss.function in ("nll_loss", "cross_entropy") and len(shape) > 1
    if scores is None or not scores.are_whole or not of_classes or shape[0] == shape[1]:
        return None
    if scores.made_by == "log_softmax":
        return scores.exponential_sum
    return scores.row_sum if scores.made_by == "softmax" else None
