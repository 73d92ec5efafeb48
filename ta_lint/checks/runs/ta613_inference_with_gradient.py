"""TA613: forward passes record graphs that no backward pass goes through."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (
    (
        "eval",
        "train",
        "*backward",
        "item",
        "numpy",
        "detach",
        "argmax",
        "save_image",
        "make_grid",
        "__init__",
    ),
)
AROUND = (("eval", "*backward", "training_step", "*Trainer", "load_state_dict"),)

PASSES = 2
"""The least graphs: a single pass may be there to learn a shape."""


def check_run(run: Run) -> Iterator[Said]:
    for inference in run.inferences:
        evidence = {"passes": inference.passes, "graphs": inference.graphs, "used": inference.used}
        if inference.graphs >= PASSES and not inference.used:
            message = "the forward pass runs with gradients that nobody uses: put it under `torch.no_grad()`"
            switched = inference.switched
            related = () if switched is None else ((switched, "the model is put into evaluation mode here"),)
            yield Suspicion(inference.place, message, evidence, related=related)
        elif not inference.graphs or inference.used:
            because = (
                f"a backward pass goes through {inference.used} of {inference.graphs} graphs"
                if inference.graphs
                else f"none of {inference.passes} passes records a graph"
            )
            yield Refutation(inference.place, because, evidence)


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Put `@torch.no_grad()` over a function that only evaluates."""
    from ta_lint.facts.evaluation_edits import record_nothing

    return record_nothing(module, call)
