"""TA315: targets are invalid for the loss: a missing class, one-hot rows of integers, or no probability; or all are one."""

from collections.abc import Iterator

from ta_runtime.facts import Flight, Loader, Loss, Run, Step, Suspicion

TOLERANCE = 0.01
"""How far from 0 to 1 a probability may be by rounding: the next bfloat16 above 1 is 1.0078."""
SAMPLES = 64
"""Labels that say which classes the training has."""
EXPECTED = 10.0
"""Samples of a class that the training should have by its share of the evaluation: by chance it then has none with
probability 5e-5."""
_SHOWN = 10
_CLASSES = ("cross_entropy", "nll_loss")
_PROBABILITIES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


def check_step(step: Step) -> Iterator[Suspicion]:
    for loss in step.losses:
        message = None
        if loss.function in _CLASSES:
            message = _wrong_classes(loss)
        elif loss.function in _PROBABILITIES:
            message = _wrong_probabilities(loss)
        if message is not None:
            evidence: dict[str, float | int | str] = {
                "input": str(tuple(loss.input.shape)),
                "target": str(tuple(loss.target.shape)),
                "dtype": str(loss.target.dtype).removeprefix("torch."),
            }
            if loss.target.minimum is not None and loss.target.maximum is not None:
                evidence |= {"minimum": loss.target.minimum, "maximum": loss.target.maximum}
            yield Suspicion(loss.place, message, evidence)


def check_progress(run: Run) -> Iterator[Suspicion]:
    held_out = [loader for loader in run.loaders if loader.evaluates]
    for loader in run.loaders:
        count = loader.seen.labels.total()
        if not loader.trained or not loader.seen.ended or count < SAMPLES or len(loader.seen.labels) == 1:
            continue  # that all are one, the loss says
        for other in held_out:
            if lacking := sorted(_lacking(loader, other)):
                message = (
                    "training has no sample of some classes of the evaluation: check the labels and the split"
                )
                evidence: dict[str, float | int | str] = {
                    "classes": ", ".join(map(str, lacking[:_SHOWN])),
                    "training samples": count,
                }
                yield Suspicion(loader.place, message, evidence, related=((other.place, "the evaluation"),))
                break


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    for one in flight.one_target:
        message = f"every target of `{one.function}` is the same class: check how the labels are read"
        yield Suspicion(one.place, message, {"class": one.target, "targets": one.count})


def _lacking(loader: Loader, other: Loader) -> Iterator[int]:
    """The classes that one loader lacks, though by their share of another it should have some."""
    own, others = loader.seen.labels, other.seen.labels
    for label, count in others.items():
        if label not in own and count * own.total() >= EXPECTED * others.total():
            yield label


def _wrong_classes(loss: Loss) -> str | None:
    target, given = loss.target, loss.input
    if not given.shape:
        return None
    classes = given.shape[1] if len(given.shape) > 1 else given.shape[0]
    if target.dtype.is_floating_point:
        if loss.function == "cross_entropy" and target.shape == given.shape:
            return None  # probabilities of the classes
        return f"`{loss.function}` gets floats where it expects class indices: cast the target with `.long()`"
    if target.shape == given.shape and len(given.shape) > 1:
        return (
            f"`{loss.function}` gets one-hot integers where it expects class indices: use `argmax(1)` of them"
        )
    if target.minimum is None or target.maximum is None:
        return None
    if target.minimum < 0:
        return f"a target of `{loss.function}` is below zero: map it to a class, or set `ignore_index` to it"
    if target.maximum >= classes:
        return (
            f"a target of `{loss.function}` is beyond the classes of the input: count from 0, or add outputs"
        )
    return None


def _wrong_probabilities(loss: Loss) -> str | None:
    target = loss.target
    if target.minimum is None or target.maximum is None or not loss.training:
        return None
    masked = loss.options.get("reduction") == "none" or loss.options.get("weight") is not None
    if target.minimum < -TOLERANCE and not masked:
        return f"a target of `{loss.function}` is below 0: scale the targets to 0 to 1"
    if target.maximum > 1 + TOLERANCE and not masked:
        return f"a target of `{loss.function}` is above 1: scale the targets to 0 to 1"
    return None
