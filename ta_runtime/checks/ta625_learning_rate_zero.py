"""TA625: training continued at a learning rate of 0, or past a cosine schedule's end, where the rate climbs."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

FEW = 20
"""Steps in a row at a rate of 0."""
PAST = 1.1
"""Of the length of a cosine: some make a step more, for the epoch that they count from 1."""


def check_run(run: Run) -> Iterator[Suspicion]:
    of_epochs = {one.built for one in run.loop.schedules if one.length and one.length == one.passes}
    for schedule in run.loop.schedulers:
        optimizer = schedule.optimizer
        if schedule.is_part or not schedule.steps or schedule.built in of_epochs:  # TA608 says why it is over
            continue
        if schedule.length is not None and schedule.steps > max(PAST * schedule.length, schedule.length + 1):
            message = (
                f"`{schedule.kind}` steps past its end, where the learning rate rises again: fit its length"
            )
            evidence = {"steps of the schedule": schedule.steps, "laid out for": schedule.length}
            yield Suspicion(schedule.built, message, evidence)
        elif optimizer.at_zero >= FEW:
            message = "nothing is learned at a learning rate of 0: check the schedule and the groups"
            evidence = {"steps at 0 in a row": optimizer.at_zero, "steps": optimizer.steps}
            yield Suspicion(schedule.built, message, evidence)
