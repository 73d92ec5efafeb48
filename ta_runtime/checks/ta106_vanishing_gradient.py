"""TA106: gradients shrink by orders of magnitude from the last layers to the first."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import Tensor

from ta_runtime.facts import Gradients, Suspicion
from ta_runtime.facts.history import SAMPLED_EVERY

RATIO = 1e-5
"""Early over late. AUTOTRAINER (ICSE 2021) says 1e-3; measured, the healthy runs in `tests/runs` keep above 1e-2."""
FALL = 20.0
"""From each quarter of the weights to the one before it; if the fall of 1e5 is even, it is 46."""
WEIGHTS = 8
"""Fewer are not deep."""
SAMPLES = 4
"""Samples, of every tenth step, that must all show it: a zero-initialised head delays the layers before it."""
LEAST = (SAMPLES - 1) * SAMPLED_EVERY + 1


def check_gradients(gradients: Gradients) -> Iterator[Suspicion]:
    if gradients.step % SAMPLED_EVERY or gradients.sharded or not gradients.total:
        return
    if (ratio := _ratio(gradients.tensors, gradients.norms)) is None or ratio > RATIO:
        return
    earlier = list(gradients.optimizer.history.samples)[-(SAMPLES - 1) :]
    if len(earlier) < SAMPLES - 1:
        return
    for norms in earlier:
        past = _ratio(gradients.tensors, norms)
        if past is None or past > RATIO:
            return
    first = next(
        index
        for index, tensor in enumerate(gradients.tensors)
        if tensor.dim() >= 2 and gradients.norms[index]
    )
    parameter = gradients.parameter(first)
    message = (
        "the first layers hardly train, as gradients shrink on the way: add normalisation or skip connections"
    )
    yield Suspicion(
        parameter.place, message, {"first over last, per element": ratio, "first": parameter.name}
    )


def _ratio(tensors: Sequence[Tensor], norms: Sequence[float | None]) -> float | None:
    """The gradients of the first quarter of the weights over those of the last, each the largest root mean square.

    None if it does not fall much at each quarter: a branch with small gradients is not a chain.
    """
    sizes = [
        norm / tensor.numel() ** 0.5
        for tensor, norm in zip(tensors, norms, strict=False)
        if norm and tensor.dim() >= 2
    ]
    if len(sizes) < WEIGHTS:
        return None
    cuts = [len(sizes) * part // 4 for part in range(5)]
    quarters = [max(sizes[start:end]) for start, end in pairwise(cuts)]
    if any(later < FALL * earlier for earlier, later in pairwise(quarters)):
        return None
    ratio: float = quarters[0] / quarters[3]
    return ratio
