"""TA427: an optimizer holds parameters that no module has any more, and none holds their replacements."""

from collections.abc import Iterator

from ta_runtime.facts import Membership, Refutation, Run, Said, Sight, Suspicion
from ta_runtime.probes.places import Place

STEPS = 2
"""Thorough steps in which a parameter that no optimizer holds got a new gradient, and nothing wrote to it."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for layer in run.memberships:
        if layer.is_outermost and layer.left_out and layer.steps >= STEPS and layer.stale:
            message = "the optimizer holds this layer's old parameters, so it never trains: build the optimizer after this"
            evidence: dict[str, float | int | str] = {
                "layer": layer.name or "the model",
                "parameters left out": layer.left_out,
                "largest gradient norm": layer.gradient or 0.0,
                "stale parameters": layer.stale,
                "steps": layer.steps,
            }
            related = ((layer.optimizer, "the optimizer is built here"),) if layer.optimizer else ()
            yield Suspicion(layer.place, message, evidence, related=related)


def check_run(run: Run) -> Iterator[Said]:
    """Of the models as they were last: every parameter that can learn has an optimizer."""
    models = [layer for layer in run.memberships if not layer.name]
    for place, held in _by_optimizer(models).items():
        if all(model.held == model.trainable and not model.stale for model in held):
            count = sum(model.held for model in held)
            because = f"optimizers hold all {count} trainable parameters, as the models have them"
            numbers = {"trainable parameters": sum(m.trainable for m in held), "held": count}
            yield Refutation(place, because, numbers, rests_on=Sight.LAYERS)


def _by_optimizer(models: list[Membership]) -> dict[Place, list[Membership]]:
    found: dict[Place, list[Membership]] = {}
    for model in models:
        if model.optimizer is not None and model.trainable:
            found.setdefault(model.optimizer, []).append(model)
    return found
