"""TA434: a model is evaluated with weights whose spectral norm was never estimated."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

NORMALISED = 1.5
"""Of a weight divided by a good estimate it is 1; by one round of the power iteration it is seldom above this."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for found in run.normalisations:
        if found.norm is None or found.norm < NORMALISED:
            continue
        message = (
            "`spectral_norm` has no estimate yet in evaluation mode: run one forward pass in training mode"
        )
        evidence: dict[str, float | int | str] = {
            "spectral norm": found.norm,
            "layers": found.layers,
            "passes": found.passes,
        }
        related = ((found.used_at, "the model is called here"),)
        yield Suspicion(found.place, message, evidence, related=related)
