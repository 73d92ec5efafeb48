"""TA108: the loss has been one number since the first step, or stays that of a random guess."""

import math
from collections.abc import Iterator
from statistics import median

from ta_runtime.facts import Gradients, Loss, Step, Suspicion
from ta_runtime.probes.places import Place

LEAST = 20
"""Steps with the very same loss, bit for bit."""
GUESSING = 0.99
"""Of the logarithm of the number of classes, the loss of a uniform guess."""


def check_gradients(gradients: Gradients) -> Iterator[Suspicion]:
    losses = gradients.optimizer.history.losses
    if losses.count < LEAST or losses.lowest != losses.highest or gradients.loss != losses.lowest:
        return
    if losses.lowest and not gradients.skipped and gradients.total is not None:
        message = "the loss is the same at every step, so nothing is learned: look for what makes the gradients zero"
        yield Suspicion(
            _place(gradients), message, {"loss": losses.lowest, "steps": losses.count}, variant="constant"
        )


def check_step(step: Step) -> Iterator[Suspicion]:
    for gradients in step.gradients:
        history = gradients.optimizer.history
        if gradients.loss is None or (late := history.late_losses(gradients.step)) is None:
            continue
        guess = next((guess for loss in step.losses if (guess := _guess(loss, gradients.loss))), None)
        if guess is None:
            continue
        usual = median(late)
        if usual >= GUESSING * guess:
            message = "the classifier is still no better than a random guess: check labels, inputs and learning rate"
            evidence = {"usual loss": usual, "loss of a guess": guess}
            yield Suspicion(_place(gradients), message, evidence, variant="guessing")


def _guess(loss: Loss, stepped_on: float) -> float | None:
    """The loss of a uniform guess, if the step used only this loss. Two classes are left out: a GAN stays there."""
    options = loss.options
    plain = (
        loss.function == "cross_entropy"
        and loss.training
        and loss.value == stepped_on
        and not loss.target.dtype.is_floating_point
        and options.get("weight") is None
        and not options.get("label_smoothing")
        and options.get("reduction") == "mean"
    )
    if not plain or not loss.input.shape:
        return None
    classes = loss.input.shape[1 if len(loss.input.shape) > 1 else 0]
    return math.log(classes) if classes > 2 else None


def _place(gradients: Gradients) -> Place:
    return gradients.loss_place or gradients.place
