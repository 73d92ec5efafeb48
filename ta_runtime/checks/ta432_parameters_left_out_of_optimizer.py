"""TA432: a new layer gets gradients in each step, but no optimizer holds any of it."""

import re
from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Sight, Suspicion, Unobserved
from ta_runtime.probes.sources import assigned_to

STEPS = 3
"""Thorough steps in which each of its parameters got a new gradient, and nothing wrote to them."""
EARLY = 256
"""Optimizer steps after which this is said before the run is over: another phase of the training may build its optimizer
later, and the layer would then have been left out on purpose for a while."""

_FIXED = re.compile(
    r"target|teacher|fix|froz|freez|random|ema|momentum|pretrain|extract|percept|vgg|lpips|old", re.IGNORECASE
)
"""Names of modules that should not change: those of the linter."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for layer in run.memberships:
        if (
            layer.is_outermost
            and layer.is_fresh
            and layer.left_out
            and not layer.stale
            and layer.steps >= STEPS
            and (run.over or run.steps >= EARLY)
            and not _FIXED.search(f"{layer.name} {assigned_to(layer.place)}")
        ):
            message = "this layer never learns, as no optimizer has its parameters: add them to the optimizer"
            evidence: dict[str, float | int | str] = {
                "layer": layer.name or "the model",
                "parameters left out": layer.left_out,
                "largest gradient norm": layer.gradient,
                "steps": layer.steps,
            }
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
