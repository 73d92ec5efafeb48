"""TA214: gradients in float16 become zero because nothing scales the loss."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion
from ta_lint.events.underflow import HasUnderflows

KEYWORDS = ("*backward",)
AROUND = ("autocast",)

LOST = 0.2
"""The least share of elements that are zero. Dead ReLU units give zeros too, but not very small numbers beside them."""
TINY = 0.5
"""The least share of the other elements that are below the smallest normal number of float16, as where a part is cut off below."""
HEALTHY = 0.02
AUDITS = 2
"""How many audited steps in a row have to show it: gradients of a first step may be small."""


MESSAGE = "small gradients become zero in float16: scale the loss with a `GradScaler`"


def check_run(run: Run) -> Iterator[Said]:
    """What the source says: a run does not know which losses are in float16, and measures their gradients instead."""
    for backward in run.backwards:
        if backward.in_half:
            yield Suspicion(backward.place, MESSAGE, {"losses in float16": backward.in_half})


def check_step(step: HasUnderflows) -> Iterator[Said]:
    for found in step.underflows:
        if found.by_scaler:
            yield Refutation(
                found.place, "a gradient scaler makes the step", {"step": "made by a gradient scaler"}
            )
            continue
        if found.zeros is None:
            continue
        is_lost = found.zeros >= LOST and (found.tiny >= TINY if found.tiny is not None else _has_loss(step))
        share = {"share of gradient elements that are zero": round(found.zeros, 3)}
        if step.history.streak(("TA214", found.place), is_lost) >= AUDITS:
            tiny = (
                {} if found.tiny is None else {"share of the others that lose digits": round(found.tiny, 3)}
            )
            yield Suspicion(found.place, MESSAGE, {**share, **tiny})
        elif found.zeros <= HEALTHY:
            because = f"{found.zeros:.1%} of the gradient elements of float16 layers are zero"
            yield Refutation(found.place, because, share, of_data=True)


def _has_loss(step: HasUnderflows) -> bool:
    """Whether there is a loss: where all of a gradient is zero, biases included, nothing else tells why."""
    return any(gradients.loss for gradients in step.gradients)
