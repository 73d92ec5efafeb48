"""TA417: `scaled_dot_product_attention` drops values while the module that calls it is in evaluation mode."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion
from ta_runtime.facts.mode import ATTENTION


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for dropping in run.modes.droppings:
        if dropping.function != ATTENTION or not dropping.evaluating:
            continue
        evidence = {"largest dropout_p": dropping.p, "calls in evaluation mode": dropping.evaluating}
        if dropping.dropped:
            message = "`scaled_dot_product_attention` drops in evaluation too: set `dropout_p` to 0 unless it trains"
            yield Suspicion(dropping.place, message, evidence)
        else:
            yield Refutation(dropping.place, evidence | {"dropped": 0})
