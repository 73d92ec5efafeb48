"""TA327: a sum, a list or a metric gathers over all epochs, but is used as that of one epoch."""

from collections.abc import Iterator

from ta_lint.core.purposes import is_meant
from ta_lint.events.metric import TorchMetric
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = (("len", "torchmetrics", "mean", "cat", "stack", "append", "extend"),)
AROUND = (("DataLoader", "*loader", "*loaders", "torchmetrics", "*_step"),)

FEW = 3
"""Times that a metric was computed, each over one pass more than the time before."""


def check_run(run: Run) -> Iterator[Said]:
    for one in run.gathered:
        if one.is_list:
            message = f"`{one.code}` is never emptied and covers all epochs so far: empty it in each epoch"
        else:
            message = (
                f"`{one.code}` sums all epochs but is divided by the size of one: reset it in each epoch"
            )
        yield Suspicion(one.used, message, related=((one.added, "added here"),) if one.added else ())
    passes = {each.batches for loader in run.loaders for each in loader.passes if each.ended}
    for metric in run.metrics:
        if metric.resets >= 2:
            because = f"the metric was reset {metric.resets} times"
            yield Refutation(metric.built, because, {"resets": metric.resets})
        elif not metric.resets and _goes_on(metric, passes) and not is_meant("all_epochs", metric.name):
            message = f"`{metric.kind}` covers all epochs so far: call `reset()` in each epoch"
            numbers = {"updates": metric.computed_at, "in the last epoch": metric.added[-1]}
            yield Suspicion(metric.built, message, numbers)


def _goes_on(metric: TorchMetric, passes: set[int]) -> bool:
    """Whether it grew by a whole pass over a loader each time."""
    return len(metric.added) >= FEW and all(added in passes for added in metric.added)
