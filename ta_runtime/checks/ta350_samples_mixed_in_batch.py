"""TA350: the model's output for one sample depends on the other samples in its batch."""

from collections.abc import Iterator

from ta_runtime.facts import Flight, Suspicion


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    mixing = flight.mixing
    if mixing is not None and mixing.change > mixing.rounding:
        message = "a sample's output depends on the rest of its batch: look for a reshape or a wrong `dim`"
        evidence: dict[str, float | int | str] = {
            "model": mixing.model,
            "samples": mixing.samples,
            "relative change": round(mixing.change, 4),
        }
        yield Suspicion(mixing.place, message, evidence)
