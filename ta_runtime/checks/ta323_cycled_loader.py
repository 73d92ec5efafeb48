"""TA323: training repeats the stored batches of the first epoch and never iterates over its loader again."""

from collections.abc import Iterator

from ta_runtime.facts import Loader, Run, Said, Suspicion, Unobserved

IN_ORDER = "SequentialSampler"
FEW = 2
"""Steps of a run before it says anything."""


def check_run(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if loader.stepped_at is None or loader.sampler in ("", IN_ORDER) or not loader.passes:
            continue
        last = loader.passes[-1]
        if last.begun is None or last.steps < FEW:
            continue
        first, after = last.ended_at - last.started_at, run.steps - last.ended_at
        numbers = {"batches kept": last.batches, "steps with them again": after}
        if not last.ended:
            yield Unobserved(last.begun, "the run ended within the first epoch")
        elif (
            last.kept and after >= first and 2 * last.steps >= last.batches and not _others_go_on(loader, run)
        ):
            message = (
                "training replays the first epoch and never shuffles again: restart the loader in each epoch"
            )
            yield Suspicion(last.begun, message, numbers)


def _others_go_on(loader: Loader, run: Run) -> bool:
    """Whether another loader yields training batches after this one has ended."""
    end = loader.passes[-1].ended_at
    return any(
        other is not loader and not other.evaluates and other.last_step > end + 1 for other in run.loaders
    )
