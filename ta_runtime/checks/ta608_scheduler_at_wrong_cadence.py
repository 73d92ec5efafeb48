"""TA608: a learning rate scheduler that counts batches was stepped once per epoch, or the reverse."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, SchedulerCalls, Suspicion, Unobserved

_ENDLESS = ("ExponentialLR", "MultiStepLR", "StepLR")
NOTHING = 1e-7
"""Of the first learning rate: below it, no weight in single precision moves that the first rate moved by its size."""
SOMETHING = 1e-3
"""Of the first learning rate: above it, weights still train."""
FEW = 4
"""Steps of a scheduler from which on its cadence shows."""


def check_run(run: Run) -> Iterator[Said]:
    for schedule in run.loop.schedules:
        if schedule.has_argument or not schedule.begins:
            continue
        if schedule.times < FEW:
            yield Unobserved(schedule.place, f"{schedule.times} steps of it, too few to tell")
            continue
        related = ((schedule.built, "the schedule is laid out here"),)
        evidence = _evidence(schedule)
        if _is_per_epoch(schedule):
            message = (
                f"`{schedule.kind}` counts optimizer steps, but is stepped far less often: step it after each"
            )
            yield Suspicion(schedule.place, message, evidence, related=related)
        elif not schedule.counts_batches and _is_per_batch(schedule):
            message = f"`{schedule.kind}` counts epochs, but is stepped with the optimizer: step it per epoch"
            yield Suspicion(schedule.place, message, evidence, related=related)
        elif _fits(schedule):
            because = (
                f"{schedule.times} steps of it and {schedule.optimizer_steps} of the optimizer fit its length"
            )
            yield Refutation(schedule.place, because, evidence)


def _is_per_epoch(schedule: SchedulerCalls) -> bool:
    """Whether the optimizer made as many steps as the scheduler is long, and the scheduler at most half as many.

    A length that may count epochs must be met exactly, as it could be met by chance.
    """
    if schedule.length is None or schedule.times > schedule.length / 2:
        return False
    tolerance = schedule.optimizer_steps / schedule.times if schedule.counts_batches else 0
    return abs(schedule.optimizer_steps - schedule.length) <= tolerance


def _is_per_batch(schedule: SchedulerCalls) -> bool:
    """Whether it stepped with the optimizer, and is as long as the run has epochs, or has decayed to nothing."""
    if (
        schedule.times < 0.9 * schedule.optimizer_steps
        or schedule.batches < 2 * schedule.passes
        or schedule.passes < 2
    ):
        return False
    if schedule.kind in _ENDLESS:
        return bool(schedule.first_rate) and schedule.rate is not None and _share(schedule) < NOTHING
    return schedule.length == schedule.passes and schedule.times >= 2 * schedule.passes


def _fits(schedule: SchedulerCalls) -> bool:
    """Whether it made all its steps, or part of the learning rate is left."""
    if schedule.length is not None:
        return 0.9 * schedule.length <= schedule.times <= schedule.length + 1
    return schedule.kind in _ENDLESS and bool(schedule.first_rate) and _share(schedule) > SOMETHING


def _share(schedule: SchedulerCalls) -> float:
    return (schedule.rate or 0.0) / schedule.first_rate if schedule.first_rate else 0.0


def _evidence(schedule: SchedulerCalls) -> dict[str, float | int | str]:
    found: dict[str, float | int | str] = {
        "steps of the scheduler": schedule.times,
        "of the optimizer": schedule.optimizer_steps,
    }
    if schedule.length is not None:
        found["laid out for"] = schedule.length
    if schedule.passes:
        found["epochs"] = schedule.passes
    if schedule.rate is not None:
        found["last learning rate"] = schedule.rate
    return found
