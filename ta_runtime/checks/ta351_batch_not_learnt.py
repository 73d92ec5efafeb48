"""TA351: the loss of a single batch does not fall when a copy of the model is trained only on that batch."""

from collections.abc import Iterator

from ta_runtime.facts import Flight, Suspicion

STEPS = 20
"""Fewer say nothing."""
FALLEN = 0.02
"""Of the loss: a model that learns anything of its batch has left this behind after a few steps."""


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    tried = flight.overfitting
    if tried is None or tried.steps < STEPS or len(tried.rates) < 2 or tried.first <= tried.floor:
        return
    if tried.lowest > (1 - FALLEN) * tried.first:
        message = "a copy of the model cannot learn even one batch: check loss, targets and learning rate"
        evidence = {"loss": tried.first, "lowest": tried.lowest, "steps at each rate": tried.steps}
        yield Suspicion(tried.place, message, evidence)
