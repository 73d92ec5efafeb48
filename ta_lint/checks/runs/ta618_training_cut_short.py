"""TA618: epochs leave their loader before its end: rounded down, one batch too few, or by a leftover limit."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (("break", "islice", "range", "while"),)
AROUND = ("*backward", "step")


def check_progress(run: Run) -> Iterator[Said]:
    for cut in run.cuts:
        evidence = {"batches per epoch": cut.batches or "not known", "of": cut.length or "not known"}
        head = (cut.loop,) if cut.loop != cut.place else ()
        if cut.whole and cut.limit is not None and cut.limit >= (cut.length or 0):
            reason = f"the loader has {cut.length} batches, which is within the limit of {cut.limit}"
            yield Unobserved(cut.place, reason, head)
        elif cut.whole:
            yield Refutation(cut.place, f"an epoch takes all {cut.length} batches", evidence, head)
        elif cut.recurs:
            message = "the last batch of each epoch is left out: round the number of batches up"
            if cut.at_end:
                message = (
                    "the last epoch is not finished, as the number of steps is rounded down: round it up"
                )
            elif cut.limit is not None:
                message = "training leaves the loop after a few batches of each epoch: remove the limit used to debug"
            yield Suspicion(
                cut.place, message, evidence, related=tuple((one, "the training loop") for one in head)
            )
