"""TA629: a backward pass runs under `autocast`, which torch advises against."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ("*backward",)
AROUND = ("*autocast*",)


def check_run(run: Run) -> Iterator[Said]:
    for one in run.under_autocast:
        message = f"`{one.code}` runs under `{one.autocast_code}`, which may change its precision: move it out of the block"
        yield Suspicion(one.place, message, related=((one.autocast, "made here"),))
