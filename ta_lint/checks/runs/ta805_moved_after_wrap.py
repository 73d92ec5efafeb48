"""TA805: a model is moved or converted inside `DistributedDataParallel`, which keeps reducing the old gradients."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (("bfloat16", "cpu", "cuda", "double", "half", "to", "xpu"),)
AROUND = ("DistributedDataParallel",)

_HOW = frozenset({"bfloat16", "cpu", "cuda", "double", "half", "to", "xpu"})


def check_run(run: Run) -> Iterator[Said]:
    for one in run.moved_after_wrap:
        if one.method in _HOW:
            message = f"`.{one.method}()` after wrapping: `DistributedDataParallel` reduces the old parameters; do it before"
            yield Suspicion(one.place, message, related=((one.wrapped, "the model is wrapped here"),))
