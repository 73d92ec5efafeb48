"""TA617: a training loop steps without ever limiting the gradient norm or values."""

import re
from collections.abc import Iterator

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = ("*backward", "step")

_BOUNDS = regex(r"clip|grad_?norm|max_norm|clamp", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework or _BOUNDS.search(module.source.text):
        return
    for loop in module.training_loops:
        step = loop.steps[0].call
        message = (
            f"`{module.code(step)}` follows a single huge gradient far away: call `clip_grad_norm_` first"
        )
        yield Suspicion(step, message, related=tuple((repeat, "the loop") for repeat in loop.loops))
