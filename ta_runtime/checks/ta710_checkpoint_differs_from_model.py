"""TA710: what is saved of a model is not the state that it has."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion]:
    for saved in run.checkpoints.saved:
        kept: dict[str, int | str] = {"saved as they are": saved.kept}
        if saved.lost:
            message = "parameters that this run has trained are missing from what is saved"
            yield Suspicion(
                saved.place, message, {"missing": len(saved.lost), "first": saved.lost[0], **kept}
            )
        elif saved.changed:
            message = "parameters that this run has trained are saved with other values than they have"
            evidence = {"changed": len(saved.changed), "first": saved.changed[0], **kept}
            yield Suspicion(saved.place, message, evidence)
