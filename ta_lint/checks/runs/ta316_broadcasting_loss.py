"""TA316: input and target of a loss differ by a dimension of one, and broadcast to all pairs."""

from collections.abc import Iterator
from typing import Protocol

from ta_lint.events.compared import REFUSING, Compared, are_pairs
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (
    tuple(
        "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss mse_loss l1_loss smooth_l1_loss "
        "huber_loss binary_cross_entropy binary_cross_entropy_with_logits mean sum".split()
    ),
)
AROUND = (("Linear", "*Conv*", "*backward"),)
ALONG = True


class HasCompared(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    @property
    def compared(self) -> list[Compared]:
        """What its losses compare."""
        ...


def check_step(step: HasCompared) -> Iterator[Said]:
    for one in step.compared:
        given, target = one.given, one.target
        evidence = {"input": str(given), "target": str(target)}
        if are_pairs(given, target) or are_pairs(target, given):
            yield Suspicion(one.place, _message(one.how), evidence)
        elif 1 in (*given[:1], *target[:1]):
            yield Unobserved(one.place, "the batch is a single sample, whose shape tells nothing")
        else:
            because = f"input {given} and target {target} pair each sample with its own target"
            yield Refutation(one.place, because, evidence)


def _message(how: str) -> str:
    if how == "distance":
        return "a column and a row broadcast to `[N, N]`, which is all pairs of outputs and targets: give both one shape"
    if how == "mean":
        return "the mean is over all pairs, as `[N, 1]` and `[N]` broadcast to `[N, N]`: give both one shape"
    if how in REFUSING:
        return f"input and target of `{how}` differ by a dimension of one, which raises: give both the same shape"
    return f"`{how}` broadcasts to all pairs of samples and targets: give both the same shape"
