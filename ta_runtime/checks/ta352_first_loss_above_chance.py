"""TA352: the loss of the first batch is far above that of a random guess: the new model is confident and wrong."""

import math
from collections.abc import Iterator

from ta_runtime.facts import Flight, Loss, Step, Suspicion
from ta_runtime.probes.places import Place

FACTOR, BESIDE = 2.0, 1.0
"""Both bounds above the loss of a random guess: with two classes that is only 0.69."""
_PLAIN = {"weight": None, "pos_weight": None, "label_smoothing": 0.0, "reduction": "mean"}


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    for loss in flight.first_losses:
        yield from _judged(loss.place, loss.function, loss.value, loss.chance)


def check_step(step: Step) -> Iterator[Suspicion]:
    """The first step of a training whose only loss it is; of several micro-batches the first counts."""
    losses = [loss for loss in step.losses if loss.training]
    is_first = step.gradients and all(each.optimizer.history.first_step is None for each in step.gradients)
    if not is_first or not losses or len({(loss.place, loss.function) for loss in losses}) > 1:
        return
    first = losses[0]
    if first.value is not None and (chance := _chance(first)) is not None:
        yield from _judged(first.place, first.function, first.value, chance)


def _judged(place: Place, function: str, value: float, chance: float) -> Iterator[Suspicion]:
    if value > max(FACTOR * chance, chance + BESIDE):
        message = "the first loss is far above that of a random guess: check the initialisation"
        evidence: dict[str, float | int | str] = {
            "loss": value,
            "loss of a guess": round(chance, 4),
            "function": function,
        }
        yield Suspicion(place, message, evidence)


def _chance(loss: Loss) -> float | None:
    """The loss of a guess that knows nothing; None where that is not known."""
    if any(loss.options.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return None
    if loss.function == "binary_cross_entropy_with_logits":
        return math.log(2)
    shape = loss.input.shape
    # `nll_loss` does not normalise: what it gets may be anything, which other rules are about
    if loss.function != "cross_entropy" or loss.target.dtype.is_floating_point or not shape:
        return None
    classes = shape[1] if len(shape) > 1 else shape[0]
    return math.log(classes) if classes > 1 else None
