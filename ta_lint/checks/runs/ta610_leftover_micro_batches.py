"""TA610: the batches left over after the last full accumulation of an epoch are not stepped in it."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = ("*backward", "step", "%")


def check_run(run: Run) -> Iterator[Said]:
    for one in run.leftovers:
        numbers = {"batches to a step": one.usual or "not known", "left over": one.left or 0}
        if one.left != 0:
            message = (
                "the last batches of an epoch are accumulated but not stepped in it: step after the loop too"
            )
            yield Suspicion(one.place, message, numbers, related=one.related, shows_elsewhere=not one.related)
        else:
            because = f"each epoch ends with a step, after {one.usual} batches to each"
            yield Refutation(one.place, because, numbers)
