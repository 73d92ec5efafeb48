"""TA416: a dropout function does not get the mode of the module that calls it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved
from ta_runtime.facts.mode import ATTENTION


def check_progress(run: Run) -> Iterator[Said]:
    for dropping in run.modes.droppings:
        if dropping.function == ATTENTION:
            continue
        name = dropping.function
        if dropping.dropped and not dropping.told:
            evidence = {"p": dropping.p, "calls in evaluation mode": dropping.evaluating}
            yield Suspicion(
                dropping.place,
                f"`{name}` without `training` drops values in evaluation too: pass `training=self.training`",
                evidence,
            )
        elif dropping.kept and not dropping.told:
            evidence = {"p": dropping.p, "calls in training mode": dropping.training}
            message = f"`{name}` without `training` drops nothing, not even in training: pass `training=self.training`"
            yield Suspicion(dropping.place, message, evidence)
        elif not dropping.evaluating:
            yield Unobserved(dropping.place, "no call was in evaluation mode")
        elif not dropping.training:
            yield Unobserved(dropping.place, "its probability is 0 in this run")
        elif not dropping.dropped:
            because = f"none of {dropping.evaluating} calls in evaluation mode drops, and {dropping.training} in training do"
            evidence = {"p": dropping.p, "calls in evaluation mode": dropping.evaluating, "dropped": 0}
            yield Refutation(dropping.place, because, evidence)
