"""TA417: `scaled_dot_product_attention` drops values while the module that calls it is in evaluation mode."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved
from ta_runtime.facts.mode import ATTENTION


def check_progress(run: Run) -> Iterator[Said]:
    for dropping in run.modes.droppings:
        if dropping.function != ATTENTION:
            continue
        if not dropping.evaluating:
            yield Unobserved(dropping.place, "no call was in evaluation mode")
            continue
        evidence = {"largest dropout_p": dropping.p, "calls in evaluation mode": dropping.evaluating}
        if dropping.dropped:
            message = "`scaled_dot_product_attention` drops in evaluation too: set `dropout_p` to 0 unless it trains"
            yield Suspicion(dropping.place, message, evidence)
        elif not dropping.training:
            yield Unobserved(dropping.place, "its probability is 0 in this run")
        else:
            because = f"none of {dropping.evaluating} calls in evaluation mode drops, and {dropping.training} in training do"
            yield Refutation(dropping.place, because, evidence | {"dropped": 0})
