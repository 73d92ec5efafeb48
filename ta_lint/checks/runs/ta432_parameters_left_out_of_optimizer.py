"""TA432: a new layer gets gradients in each step, but no optimizer holds any of it."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved

KEYWORDS = ()
AROUND = (("parameters", "named_parameters"), ("*backward", "training_step"))
"""The layer may be built in a file that says nothing of its parameters."""

STEPS = 3
"""Backward passes in which each of its parameters got a new gradient, and nothing wrote to them."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    said = set()
    for layer in run.memberships:
        line = layer.place.path, layer.place.line
        if (
            line not in said  # one line may build several
            and layer.is_outermost
            and layer.is_fresh
            and layer.is_settled
            and layer.left_out
            and layer.steps >= STEPS
            and not layer.stale  # TA427 says why
        ):
            said.add(line)
            message = "this layer never learns, as no optimizer has its parameters: add them to the optimizer"
            evidence: dict[str, float | int | str] = {
                "layer": layer.name or "the model",
                "parameters left out": layer.left_out,
                "steps": layer.steps,
            }
            if layer.gradient is not None:
                evidence["largest gradient norm"] = layer.gradient
            related = ((layer.optimizer, "an optimizer of others"),) if layer.optimizer else ()
            yield Suspicion(layer.place, message, evidence, related=related)


def check_run(run: Run) -> Iterator[Said]:
    """Of a layer that an optimizer holds, or that cannot learn in this run."""
    for layer in run.memberships:
        if not layer.trainable:
            yield Unobserved(layer.place, "all of it is frozen")
        elif layer.held == layer.trainable:
            numbers = {
                "trainable parameters": layer.trainable,
                "held": layer.held,
                "with gradient": layer.with_gradient,
            }
            because = f"optimizers hold all {layer.held} of its trainable parameters"
            yield Refutation(layer.place, because, numbers, rests_on=Sight.LAYERS)
        elif layer.looks >= STEPS and not layer.with_gradient:
            yield Unobserved(layer.place, "no gradient reaches it")
