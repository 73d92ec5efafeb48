"""TA505: the forward pass that is to be learned from is not recorded, so that no gradient comes to the model."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

STEPS = 10
"""Steps of the optimizer without a gradient, at the end of the run: a part that is left out half of the time is then never
in the loss with probability 0.001."""
EARLY_STEPS = 1000
"""Steps after which the end is not waited for: by then a phase that leaves a part out on purpose is over."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for backward in run.backwards:
        if backward.unrecorded:
            message = "the loss has no graph: the forward pass ran without recording"
            yield Suspicion(backward.place, message, {"losses without a graph": backward.unrecorded})
        elif backward.through:
            yield Refutation(backward.place, {"parameters reached": backward.parameters})
    for reach in run.reaches:
        steps = run.steps_without_gradient(reach.parameters)
        if (
            reach.unrecorded
            and not reach.cut
            and not reach.reached
            and steps >= (STEPS if run.over else EARLY_STEPS)
        ):
            message = (
                "the model is only called without recording, and the optimizer steps without its gradients"
            )
            evidence = {"steps": steps, "parameters": len(reach.parameters), "parameters with a gradient": 0}
            related = ((reach.backward, "the backward pass starts here"),)
            yield Suspicion(reach.place, message, evidence, related=related)
