"""TA613: forward passes in evaluation mode record graphs that no backward pass goes through."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion

PASSES = 2
"""The least graphs: a single pass may be there to learn a shape."""


def check_run(run: Run) -> Iterator[Said]:
    for inference in run.modes.inferences:
        evidence = {"passes": inference.passes, "graphs": inference.graphs, "used": inference.used}
        if inference.graphs >= PASSES and not inference.used:
            yield Suspicion(
                inference.place,
                "the forward pass runs with gradients that nobody uses: put it under `torch.no_grad()`",
                evidence,
            )
        elif not inference.graphs or inference.used:
            because = (
                f"a backward pass goes through {inference.used} of {inference.graphs} graphs"
                if inference.graphs
                else f"none of {inference.passes} passes records a graph"
            )
            yield Refutation(inference.place, because, evidence)
