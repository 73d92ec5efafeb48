"""TA508: tensors computed from parameters hold the graphs of their values at earlier steps."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for average in run.averages:
        if average.graphs:
            message = "averages of parameters keep the graph of all updates: update them under `no_grad()`"
            yield Suspicion(
                average.place, message, {"averages": average.graphs, "nodes of the largest": average.nodes}
            )
        elif not average.others:
            because = f"no average has a graph in {average.looks} steps looked at"
            numbers = {"averages with a graph": 0, "steps looked at": average.looks}
            yield Refutation(average.place, because, numbers)
