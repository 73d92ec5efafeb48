"""TA435: weights in half precision are stepped by a plain optimizer, so that small steps round to nothing."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = ("lr",)
AROUND = (("half", "bfloat16", "float16"),)

_FASTEST = 1e-4


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for optimizer in module.parameters.optimizers:
        if not _is_slow(module, optimizer.call):
            continue
        for source in module.parameters.whole(optimizer):
            half = module.half_precision
            if half.is_half(source.model) and not half.is_widened(source.model):
                message = (
                    f"steps of `{module.code(source.model)}` in half precision round to nothing: "
                    "keep its weights in float32"
                )
                yield Suspicion(optimizer.call, message)
                break


def _is_slow(module: FileFacts, optimizer: cst.Call) -> bool:
    """Whether it is an optimizer of torch whose learning rate is certainly small."""
    called, rate = module.qualified(optimizer.func) or "", argument(optimizer, "lr", 1)
    value = module.number(rate) if rate is not None else None
    return called.startswith("torch.optim.") and value is not None and 0 < value <= _FASTEST
