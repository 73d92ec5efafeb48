"""TA326: a number of the last batch is reported, or used for decisions, as that of the epoch."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ("for",)
AROUND = (("*backward", "training_step", "DataLoader"),)


def check_run(run: Run) -> Iterator[Said]:
    for one in run.last_batches:
        done = (
            "decides about the whole epoch"
            if one.decides
            else "is divided by the size of the whole epoch"
            if one.is_shared
            else "is reported for the whole epoch"
        )
        message = f"`{one.code}` is of the last batch alone, but {done}: average over the batches"
        related = ((one.loop, "each batch replaces the number of the one before"),)
        yield Suspicion(one.place, message, related=related, is_note=not (one.decides or one.is_shared))
