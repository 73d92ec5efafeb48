"""TA204: training waits for a `DataLoader` without workers.

The source shows which loaders have none, and a run which of them anybody waits for: only that is measured.
"""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = ("DataLoader",)
MESSAGE = "training waits for a `DataLoader` without workers: set `num_workers`"

STEPS = 10
"""The least batches that were trained on: the first ones open files and fill caches."""
SHARE = 0.2
"""The least share of a step spent waiting: by that much workers can shorten it at most."""
WAIT = 2e-3
"""The least seconds that a batch takes: so long takes a small batch from a worker (measured on two busy cores)."""
IDLE = 0.5
"""The least share of the batches at whose arrival the device had nothing left to do: else it worked while the
training process waited, and nothing was lost."""


def check_run(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if loader.workers != 0:
            continue
        if not loader.is_measured:
            if not loader.is_cheap:
                yield Suspicion(loader.place, MESSAGE)
            continue
        if loader.trained < STEPS or loader.asked == 0:
            yield Unobserved(loader.place, f"{loader.trained} batches were trained on, too few to tell")
            continue
        wait = loader.waited / loader.trained
        share = loader.waited / loader.stepping if loader.stepping else 0.0
        evidence = {"share of step": round(share, 2), "ms per batch": round(1e3 * wait, 2)}
        if wait >= WAIT and share >= SHARE and loader.idle >= IDLE * loader.asked:
            yield Suspicion(loader.place, MESSAGE, evidence)
        else:
            idle = {"share of idle arrivals": round(loader.idle / loader.asked, 2)}
            because = f"a batch takes {1e3 * wait:.2g} ms, {share:.0%} of a step of {loader.trained}"
            yield Refutation(loader.place, because, evidence | idle)
