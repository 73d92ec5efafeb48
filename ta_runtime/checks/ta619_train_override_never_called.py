"""TA619: a module has its own `train()`, but is trained without a call of it."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion]:
    for override in run.overrides:
        message = (
            f"`{override.model}.train()` does more than set the mode and never runs: call it before the loop"
        )
        evidence: dict[str, float | int | str] = {
            "steps": run.steps,
            "parameters trained that it freezes": override.parameters,
            "layers in training mode that it puts into evaluation mode": override.layers,
        }
        related = ((override.defined, "what would have been done"),)
        yield Suspicion(override.place, message, evidence, override.model, related=related)
