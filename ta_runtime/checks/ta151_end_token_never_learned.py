"""TA151: rows end in the end token, but it is never a label, so the model never learns to stop."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

FEW = 200
"""Rows that a verdict needs, that end in the end token."""
SHARE = 0.5
"""Of the rows, that end in the end token: others were cut, or are of another kind."""


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.language.batches:
        if found.ended < FEW or found.ended < SHARE * found.labelled:
            because = f"{found.ended} of {found.labelled} rows end in the end token, too few to tell"
            yield Unobserved(found.place, because)
            continue
        evidence = {
            "rows": found.labelled,
            "of them ended by the end token": found.ended,
            "end tokens among the labels": found.end_labels,
        }
        if found.end_labels:
            because = f"{found.ended} rows end in the end token, and {found.end_labels} labels are it"
            yield Refutation(found.place, because, evidence)
        else:
            message = (
                "the model never learns to stop, as the end token is never a label: use another padding token"
            )
            yield Suspicion(found.place, message, evidence)
