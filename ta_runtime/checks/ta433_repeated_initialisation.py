"""TA433: one line draws the values of one parameter several times while the model is built."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion]:
    for found in run.initialisations:
        message = "this overwrites an earlier initialisation of the same parameter: keep only the right one"
        evidence: dict[str, float | int | str] = {
            "draws": found.times,
            "parameters": found.parameters,
            "shape": str(found.shape),
        }
        yield Suspicion(found.place, message, evidence)
