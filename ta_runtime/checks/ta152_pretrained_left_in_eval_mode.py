"""TA152: a model is trained in the evaluation mode in which `from_pretrained` returned it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion

FEW = 4
"""Audited steps that a verdict needs."""
STEPS = 10
"""Optimizer steps after which a model that is to train in training mode has been put into it."""


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.pretrained:
        evidence = {"layers": found.layers, "steps looked at": found.looks, "in evaluation mode": found.still}
        related = ((found.called_at, "the model is called here"),)
        if found.looks >= FEW and found.steps >= STEPS and found.still == found.looks:
            message = f"`{found.model}` trains in evaluation mode, as it was loaded: call `train()`"
            yield Suspicion(found.place, message, evidence, related=related)
        elif found.looks and not found.still:
            yield Refutation(found.place, f"in training mode in all {found.looks} steps looked at", evidence)
