"""TA326: a number of the last batch is reported, or used for decisions, as that of the epoch."""

from collections.abc import Iterator

from ta_lint.events.last_batch import Purpose
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ("for",)
AROUND = (("*backward", "training_step", "DataLoader"),)

_DONE = {
    Purpose.DECIDES: "decides about",
    Purpose.SHARED: "is divided by the size of",
    Purpose.TOLD: "is reported for",
}


def check_run(run: Run) -> Iterator[Said]:
    for one in run.last_batches:
        message = f"`{one.code}` is of the last batch alone, but {_DONE[one.use]} the whole epoch: average over the batches"
        related = ((one.loop, "each batch replaces the number of the one before"),)
        yield Suspicion(one.place, message, related=related, is_note=one.use is Purpose.TOLD)
