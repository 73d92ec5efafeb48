"""TA623: the length of a schedule counts batches, but it stepped once for several of them."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, SchedulerCalls, Suspicion, Unobserved

FEW = 4
"""Steps of a schedule from which on its unit shows."""
NEAR = 0.1
"""How far from its length a schedule may end: warm-ups and last batches are rounded."""


def check_run(run: Run) -> Iterator[Said]:
    for schedule in run.loop.schedules:
        if schedule.length is None or schedule.has_argument or not schedule.begins:
            continue
        if schedule.times < FEW:
            yield Unobserved(schedule.built, f"{schedule.times} steps of it, too few to tell")
            continue
        numbers: dict[str, float | int | str] = {
            "laid out for": schedule.length,
            "steps of the schedule": schedule.times,
            "batches": _batches(schedule),
        }
        if abs(schedule.times - schedule.length) <= max(1, NEAR * schedule.length):
            because = f"it makes {schedule.times} of the {schedule.length} steps that it is made for"
            yield Refutation(schedule.built, because, numbers)
        elif _counts_batches(schedule):
            message = f"`{schedule.kind}` counts batches, but is stepped once for several: divide its length"
            yield Suspicion(schedule.built, message, numbers, related=((schedule.place, "it steps here"),))


def _counts_batches(schedule: SchedulerCalls) -> bool:
    """Whether it has the length of all batches, and stepped with its optimizer, which used several for each step."""
    length, between = schedule.length or 0, _batches(schedule) / schedule.times
    with_optimizer = schedule.times >= (1 - NEAR) * schedule.optimizer_steps
    return with_optimizer and between >= 2 * (1 - NEAR) and abs(_batches(schedule) - length) <= between


def _batches(schedule: SchedulerCalls) -> int:
    """The batches of the training up to its last step, those before the first step included."""
    return (
        schedule.batches + round(schedule.batches / schedule.times) - 1
        if schedule.times > 1
        else schedule.batches
    )
