"""TA325: each training step restarts its loader and takes only the first batch."""

from collections.abc import Iterator

from ta_lint.events.loaders import IN_ORDER
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion, Unobserved

KEYWORDS = (("next", "break", "return"),)
AROUND = (("*backward", "step"), ("*loader*", "dl"))

FEW = 20
"""Passes in a row that were left after one batch, which a step followed."""


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        place = loader.restarted_at
        if loader.restarted >= FEW and place is not None and loader.draws_once and loader.length != 1:
            harm = "each trains on the first batch" if loader.sampler == IN_ORDER else "no epoch ends"
            message = (
                f"the loader restarts in each step, so {harm}: create its iterator once, before the loop"
            )
            numbers = {
                "passes of one batch": loader.restarted,
                "batches of a pass": loader.length or "not known",
            }
            yield Suspicion(place, message, numbers)
        elif loader.length == 1 and loader.epochs >= FEW:
            for begun in {each.begun for each in loader.passes if each.begun is not None}:
                yield Unobserved(begun, "one batch holds all samples, so a restart loses none")
