"""TA158: texts that are packed into one row attend to each other."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

FEW = 16
"""Rows that a verdict needs."""
SHARE = 0.5
"""Of the rows, that hold several texts."""


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.language.batches:
        if not found.shifts or found.labelled < FEW:
            yield Unobserved(found.place, f"{found.labelled} rows of a causal model, too few to tell")
            continue
        evidence = {
            "rows": found.labelled,
            "of them with several texts": found.joined,
            "of these with positions that go on": found.leaking,
        }
        if not found.joined:
            yield Unobserved(found.place, f"none of {found.labelled} rows holds two texts")
        elif found.separated and not found.leaking:
            because = f"positions restart at each text in {found.joined} packed rows"
            yield Refutation(found.place, because, evidence)
        elif found.tuned and found.leaking == found.joined >= max(FEW, SHARE * found.labelled):
            message = "texts packed into one row attend to each other: restart `position_ids` at each text"
            yield Suspicion(found.place, message, evidence)
