"""TA627: the loss takes the place of the loss function, so the next pass calls a tensor."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (("for", "while", "self"),)
AROUND = ("*backward",)


def check_run(run: Run) -> Iterator[Said]:
    for one in run.rebounds:
        then = "the next call" if one.loop is None else "the next batch"
        message = f"the loss replaces the loss function `{one.code}`, so {then} raises: use another name"
        related = () if one.loop is None else ((one.loop, "the loop"),)
        yield Suspicion(one.place, message, related=related)
