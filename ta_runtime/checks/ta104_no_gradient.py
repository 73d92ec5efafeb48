"""TA104: the optimizer steps, but none of its parameters has a gradient."""

from collections.abc import Iterator

from ta_runtime.facts import Gradients, Step, Suspicion

LEAST = 3
"""Steps without any: some code steps once without, to allocate the optimizer's state or to quiet a scheduler."""


def check_gradients(gradients: Gradients) -> Iterator[Suspicion]:
    if not gradients.present or any(gradients.present):
        return
    without = gradients.optimizer.history.silence.without_gradients
    if without >= LEAST - 1 and any(tensor.numel() for tensor in gradients.tensors):  # not an empty shard
        message = "no parameter of this optimizer ever gets a gradient: give it those of the model that the loss uses"
        evidence = {
            "parameters": len(gradients.tensors),
            "backward passes since the last step": gradients.backwards,
        }
        yield Suspicion(gradients.place, message, evidence)


def check_trial(step: Step) -> Iterator[Suspicion]:
    """Of a step after a backward pass: one without only allocates the state."""
    for gradients in step.gradients:
        if gradients.backwards and gradients.present and not any(gradients.present):
            message = (
                "no parameter of this optimizer got a gradient: give it those of the model that the loss uses"
            )
            evidence = {"parameters": len(gradients.tensors), "backward passes": gradients.backwards}
            yield Suspicion(gradients.place, message, evidence)
