"""TA323: training repeats the stored batches of the first epoch and never iterates over its loader again."""

from collections.abc import Iterator

from ta_lint.events.loaders import IN_ORDER
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion, Unobserved

KEYWORDS = ("cycle",)
AROUND = ("DataLoader", ("*backward", "step"))

FEW = 2
"""Steps of a run before it says anything."""


def check_run(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        last = loader.passes[-1] if loader.passes else None
        if last is None or last.begun is None or last.steps < FEW or loader.sampler in ("", IN_ORDER):
            continue
        if not last.ended:
            yield Unobserved(last.begun, "the run ended within the first epoch")
        elif last.replayed:
            message = (
                "training replays the first epoch and never shuffles again: restart the loader in each epoch"
            )
            yield Suspicion(
                last.begun, message, {"batches kept": last.batches, "steps with them again": last.replayed}
            )
