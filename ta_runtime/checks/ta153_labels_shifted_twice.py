"""TA153: labels are shifted before they are passed to a model that shifts them itself."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

FEW = 64
"""Labels that a verdict needs."""
SHARE = 0.9
"""Of the labels, that are the token at their own position: rows that repeat one token look shifted too."""


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.language.batches:
        if not found.shifts or found.live < FEW:
            why = f"{found.live} labels, too few to tell" if found.shifts else "the model shifts no labels"
            yield Unobserved(found.place, why)
            continue
        evidence = {
            "labels": found.live,
            "of them the next token": found.live_as_next,
            "of them the token itself": found.live_as_same,
        }
        if found.live_as_same == found.live:
            yield Refutation(
                found.place, f"all {found.live} labels are the token at their own position", evidence
            )
        elif found.live_as_next == found.live and found.live_as_same < SHARE * found.live:
            message = (
                f"labels are shifted already, and `{found.model}` shifts them again: pass them unshifted"
            )
            yield Suspicion(found.place, message, evidence)
