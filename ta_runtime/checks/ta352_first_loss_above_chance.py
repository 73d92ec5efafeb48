"""TA352: the loss of the first batch is far above that of a random guess: the new model is confident and wrong."""

from collections.abc import Iterator

from ta_runtime.facts import Flight, Suspicion

FACTOR, BESIDE = 2.0, 1.0
"""Both bounds above the loss of a random guess: with two classes that is only 0.69."""


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    for loss in flight.first_losses:
        if loss.value > max(FACTOR * loss.chance, loss.chance + BESIDE):
            message = "the first loss is far above that of a random guess: check the initialisation"
            evidence: dict[str, float | int | str] = {
                "loss": loss.value,
                "loss of a guess": round(loss.chance, 4),
                "function": loss.function,
            }
            yield Suspicion(loss.place, message, evidence)
