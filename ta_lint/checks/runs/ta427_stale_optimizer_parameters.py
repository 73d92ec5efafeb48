"""TA427: a model gets or unfreezes parameters after its optimizer was built, which never sees them."""

from collections.abc import Iterator

from ta_lint.events.membership import Membership
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion

KEYWORDS = (("parameters", "named_parameters"),)
AROUND = (("step", "*train*"),)

STEPS = 2
"""Thorough steps in which a parameter that no optimizer holds got a new gradient, and nothing wrote to it."""
BUILT = "the optimizer is built here"


def check_progress(run: Run) -> Iterator[Suspicion]:
    for change in run.outdated:
        message = f"{change.what} that the optimizer does not hold, so they never train: build the optimizer after this"
        training = (change.used, "training goes on here, with the old parameters")
        yield Suspicion(change.place, message, related=((change.optimizer, BUILT), training))
    for layer in run.memberships:
        enough = layer.is_outermost and layer.left_out and layer.steps >= STEPS and layer.stale
        if enough and layer.gradient is not None:
            message = "the optimizer holds this layer's old parameters, so it never trains: build the optimizer after this"
            evidence: dict[str, float | int | str] = {
                "layer": layer.name or "the model",
                "parameters left out": layer.left_out,
                "largest gradient norm": layer.gradient,
                "stale parameters": layer.stale,
                "steps": layer.steps,
            }
            yield Suspicion(
                layer.place, message, evidence, related=((layer.optimizer, BUILT),) if layer.optimizer else ()
            )


def check_run(run: Run) -> Iterator[Said]:
    """Of the models as they were last: every parameter that can learn has an optimizer."""
    models: dict[object, list[Membership]] = {}
    for model in run.memberships:
        if not model.name and model.optimizer is not None and model.trainable:
            models.setdefault(model.optimizer, []).append(model)
    for held in models.values():
        if held[0].optimizer is not None and all(one.held == one.trainable and not one.stale for one in held):
            count = sum(one.held for one in held)
            because = f"optimizers hold all {count} trainable parameters, as the models have them"
            numbers = {"trainable parameters": sum(one.trainable for one in held), "held": count}
            yield Refutation(held[0].optimizer, because, numbers, rests_on=Sight.LAYERS)
