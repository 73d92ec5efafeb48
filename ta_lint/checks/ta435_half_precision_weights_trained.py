"""TA435: a plain optimizer steps weights in half precision, so small steps round to nothing."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = ("lr",)
AROUND = (("half", "bfloat16", "float16"),)

_FASTEST = 1e-4
_PREPARES = frozenset({"FSDP", "FullyShardedDataParallel", "fully_shard", "initialize", "prepare", "setup"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for optimizer in module.parameters.optimizers:
        if not _is_slow(module, optimizer.call):
            continue
        for source in module.parameters.whole(optimizer):
            half = module.half_precision
            widened = half.is_widened(source.model) or _is_prepared(module, source.model)
            if half.is_half(source.model) and not widened:
                message = (
                    f"updates of `{module.code(source.model)}` in half precision are lost to rounding: "
                    "keep its weights in float32"
                )
                yield Suspicion(optimizer.call, message)
                break


def _is_prepared(module: FileFacts, model: Node) -> bool:
    """Whether a framework gets the model, and may keep weights in float32: DeepSpeed does, and Accelerate under FSDP2."""
    path = dotted(model)
    return any(
        called_name(call) in _PREPARES and any(dotted(arg.value) == path for arg in call.args)
        for call in module.tree.all(cst.Call)
    )


def _is_slow(module: FileFacts, optimizer: cst.Call) -> bool:
    """Whether it is an optimizer of torch whose learning rate is certainly small."""
    called, rate = module.qualified(optimizer.func) or "", argument(optimizer, "lr", 1)
    value = module.number(rate) if rate is not None else None
    return called.startswith("torch.optim.") and value is not None and 0 < value <= _FASTEST
