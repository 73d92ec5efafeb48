"""TA405: some filters of a convolution are all zero and stay zero."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ta_runtime.facts import AskedModel, Filters, Step, Suspicion, Weight
from ta_runtime.probes.places import Place

NOTHING = 1e-6
"""Of the largest filter's norm: float32, with a resolution of 1.2e-7, loses anything smaller."""


def check_step(step: Step) -> Iterator[Suspicion]:
    if not step.filters:
        return
    moved = {id(update.tensor) for update in step.updates if update.had_gradient and update.change}
    places: dict[Place, list[tuple[Filters, int]]] = defaultdict(list)
    for filters in step.filters:
        dead = _dead(filters.norms) if id(filters.weight) in moved else 0
        if dead:
            places[filters.parameter.place].append((filters, dead))
    for place, found in places.items():
        filters, _ = found[0]
        message = (
            "the weights of some filters are all zero and add nothing: check initialisation and learning rate"
        )
        evidence: dict[str, int | str] = {
            "dead filters": sum(dead for _, dead in found),
            "filters": sum(len(filters.norms) for filters, _ in found),
            "first": filters.parameter.name,
        }
        yield Suspicion(place, message, evidence)


def check_static(asked: AskedModel) -> Iterator[Suspicion]:
    """Training may still give them weights."""
    places: dict[Place, list[tuple[Weight, int]]] = defaultdict(list)
    for weight in asked.weights:
        if dead := _dead(weight.filters):
            places[weight.parameter.place].append((weight, dead))
    for place, found in places.items():
        message = (
            "the weights of some filters are all zero, so they add nothing now: check the initialisation"
        )
        evidence: dict[str, int | str] = {
            "dead filters": sum(dead for _, dead in found),
            "filters": sum(len(weight.filters) for weight, _ in found),
            "first": found[0][0].parameter.name,
        }
        yield Suspicion(place, message, evidence, is_note=True)


def _dead(norms: Sequence[float]) -> int:
    """How many filters are zero; 0 if all are, as zero-initialised layers begin."""
    largest = max(norms, default=0.0)
    return sum(norm <= NOTHING * largest for norm in norms) if largest > 0 else 0
