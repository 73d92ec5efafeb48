"""TA608: a learning rate scheduler that counts batches is stepped once per epoch, or the reverse."""

from collections.abc import Iterator

from ta_lint.events.loop import SchedulerCalls, Unit
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = ("step", ("*sched*", "*LR"))

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
        related, evidence = ((schedule.built, "the schedule is laid out here"),), _evidence(schedule)
        if schedule.steps_per is Unit.EPOCH and schedule.length_in in (Unit.BATCH, Unit.STEP):
            message = (
                f"`{schedule.kind}` counts optimizer steps, but is stepped far less often: step it after each"
            )
            yield Suspicion(schedule.place, message, evidence, related=related)
        elif _is_per_batch(schedule):
            message = f"`{schedule.kind}` counts epochs, but is stepped with the optimizer: step it per epoch"
            yield Suspicion(schedule.place, message, evidence, related=related)
        elif _fits(schedule):
            because = (
                f"{schedule.times} steps of it and {schedule.optimizer_steps} of the optimizer fit its length"
            )
            yield Refutation(schedule.place, because, evidence)


def _is_per_batch(schedule: SchedulerCalls) -> bool:
    """Whether it stepped with the optimizer, and is as long as the run has epochs, or has decayed to nothing."""
    has_epochs = 2 <= schedule.passes <= schedule.batches / 2
    is_short = schedule.length_in is Unit.EPOCH or (schedule.left is not None and schedule.left < NOTHING)
    return schedule.steps_per in (Unit.BATCH, Unit.STEP) and has_epochs and is_short


def _fits(schedule: SchedulerCalls) -> bool:
    """Whether it made all its steps, or part of the learning rate is left."""
    if schedule.length is not None:
        return 0.9 * schedule.length <= schedule.times <= schedule.length + 1
    return schedule.left is not None and schedule.left > SOMETHING


def _evidence(schedule: SchedulerCalls) -> dict[str, float | int | str]:
    found: dict[str, float | int | str | None] = {
        "steps of the scheduler": schedule.times,
        "of the optimizer": schedule.optimizer_steps,
        "laid out for": schedule.length,
        "epochs": schedule.passes or None,
        "last learning rate": schedule.rate,
    }
    return {name: number for name, number in found.items() if number is not None}
