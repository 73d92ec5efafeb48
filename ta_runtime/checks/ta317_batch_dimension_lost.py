"""TA317: the model gets only one sample of a batch, or the loss only one of the output."""

from collections.abc import Iterator

from ta_runtime.facts import Forward, Step, Suspicion

STEPS = 2
"""Audited steps in a row in which the model gets fewer samples than the loader yields: the first may be a trial."""


def check_step(step: Step) -> Iterator[Suspicion]:
    forwards = step.training_forwards
    if len(forwards) != 1:
        return  # one sample at a time, several views, tasks, micro-batches
    forward = forwards[0]
    lost = len(step.batches) == 1 and _is_lost_before(step, forward)
    if step.history.streak(("TA317", forward.place), lost) >= STEPS:
        batch, given = step.batches[0].values[0], forward.inputs[0]
        message = "the model reads one sample of the batch as if it were a batch: give it the whole batch"
        evidence = {"batch": str(tuple(batch.shape)), "input": str(tuple(given.shape))}
        yield Suspicion(forward.place, message, evidence)
    if len(step.batches) == 1 and _is_merged(step, forward):
        shapes: dict[str, float | int | str] = {
            "samples": step.batches[0].loader.batch_size or 0,
            "input": str(tuple(forward.inputs[0].shape)),
            "output": str(tuple(forward.outputs[0].shape)),
        }
        yield Suspicion(
            forward.place,
            "the batch reaches the model as one long sample: stack the samples instead of joining them",
            shapes,
        )
    yield from _lost_after(step, forward)


def _is_lost_before(step: Step, forward: Forward) -> bool:
    """Whether the first input is the first tensor of the batch without its first dimension, and no input has that one.

    Not for a loader's batch size of 1: then a sample may be a batch.
    """
    values = step.batches[0].values
    if not values or not forward.inputs or len(values[0].shape) < 2:
        return False
    size = values[0].shape[0]
    if size < 2 or any(value.shape[:1] == (size,) for value in forward.inputs):
        return False
    return forward.inputs[0].shape == values[0].shape[1:]


def _is_merged(step: Step, forward: Forward) -> bool:
    """Whether the loader was asked for several samples and has as many targets, but the model gets and returns one row.

    Not if anything besides the row and its mask tells the model where samples end, nor if the output can be
    divided among the samples again.
    """
    size = step.batches[0].loader.batch_size or 1
    if size < 2 or not forward.inputs or not forward.outputs:
        return False
    row = forward.inputs[0].shape
    given = [value.shape for value in step.batches[0].values]
    if len(row) < 2 or row[0] != 1 or row[1] < size or row not in given:
        return False
    beside = [value for value in forward.inputs[1:] if value.name != "attention_mask" or value.shape != row]
    answers = [value.shape for value in forward.outputs]
    divisible = any(shape[:1] != (1,) or any(side % size == 0 for side in shape) for shape in answers)
    targets = any(loss.target.shape[:1] == (size,) for loss in step.losses)
    return not beside and not divisible and targets and any(shape[:1] == (size,) for shape in given)


def _lost_after(step: Step, forward: Forward) -> Iterator[Suspicion]:
    if len(forward.outputs) != 1 or forward.outputs[0].name != "tensor" or len(forward.outputs[0].shape) < 2:
        return
    output = forward.outputs[0].shape
    size = output[0]
    for loss in step.losses:
        if (
            loss.input.shape == output[1:]
            and loss.input.shape[0] != size
            and loss.target.shape[:1] == (size,)
        ):
            if size == 1 and loss.input.shape[0] == loss.input.numel == 1:
                continue
            message = f"`{loss.function}` compares one sample with the targets of the whole batch: give it all outputs"
            evidence = {
                "output": str(tuple(output)),
                "input": str(tuple(loss.input.shape)),
                "target": str(tuple(loss.target.shape)),
            }
            yield Suspicion(loss.place, message, evidence)
