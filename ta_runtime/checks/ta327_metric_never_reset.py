"""TA327: a metric is computed after each epoch over all epochs so far."""

import re
from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, TorchMetric
from ta_runtime.probes.sources import assigned_to

FEW = 3
"""Times that it was computed, each over one pass more than the time before."""
_OF_ALL = re.compile(r"total|cumul|overall|global|lifetime|all", re.IGNORECASE)


def check_run(run: Run) -> Iterator[Said]:
    passes = {each.batches for loader in run.loaders for each in loader.passes if each.ended}
    for metric in run.metrics:
        if metric.resets >= 2:
            yield Refutation(
                metric.built, f"the metric was reset {metric.resets} times", {"resets": metric.resets}
            )
        elif not metric.resets and _goes_on(metric, passes) and not _OF_ALL.search(assigned_to(metric.built)):
            message = f"`{metric.kind}` covers all epochs so far: call `reset()` in each epoch"
            numbers = {"updates": metric.computed_at, "in the last epoch": metric.added[-1]}
            yield Suspicion(metric.built, message, numbers)


def _goes_on(metric: TorchMetric, passes: set[int]) -> bool:
    """Whether it grew by a whole pass over a loader each time."""
    return len(metric.added) >= FEW and all(added in passes for added in metric.added)
