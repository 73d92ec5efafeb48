"""TA624: a schedule stepped although a gradient scaler skipped the step of its optimizer."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

SHARE = 0.01
"""Of the steps of a schedule: the few with which a scaler finds its factor hardly move a long one."""
OF_WARM_UP = 0.1
"""Of the steps that raise the rate: a short warm-up is soon lost."""
FEW = 3
"""Steps of a schedule that shows a cadence."""


def check_run(run: Run) -> Iterator[Suspicion]:
    for schedule in run.loop.schedules:
        lost = schedule.skipped > SHARE * schedule.times
        cold = schedule.skipped_rising > OF_WARM_UP * schedule.rising
        if schedule.times >= FEW and (lost or cold):
            numbers = {
                "steps of the schedule": schedule.times,
                "without one of the optimizer": schedule.skipped,
                "of these in a warm-up": schedule.skipped_rising,
            }
            message = "the scaler skips a step, the schedule does not: step it only if `scaler.get_scale()` did not fall"
            yield Suspicion(schedule.place, message, numbers)
