"""TA623: a schedule counts batches, but is stepped once for several: divide its length."""

from collections.abc import Iterator

from ta_lint.events.loop import SchedulerCalls, Unit
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (("lr_scheduler", "*schedule*"),)
AROUND = ("step",)

FEW = 4
"""Steps of a schedule from which on its unit shows."""
NEAR = 0.1
"""How far from its length a schedule may end: warm-ups and last batches are rounded."""


def check_run(run: Run) -> Iterator[Said]:
    for schedule in run.loop.schedules:
        if schedule.has_argument or not schedule.begins:
            continue
        if schedule.shared is not None:
            message = f"`{schedule.kind}` counts the batches of all processes, times their number: count them after `prepare`"
            related = ((schedule.shared, "each process gets its share here"),)
            yield Suspicion(schedule.built, message, related=related, is_note=True)
        if schedule.length_in is None and schedule.length is None:
            continue
        if schedule.times < FEW:
            yield Unobserved(schedule.built, f"{schedule.times} steps of it, too few to tell")
            continue
        numbers: dict[str, float | int | str] = {
            "laid out for": schedule.length or "all batches",
            "steps of the schedule": schedule.times,
            "batches": schedule.batches,
        }
        related = ((schedule.place, "it steps here"),)
        if _fits(schedule):
            because = f"it makes {schedule.times} of the {schedule.length} steps that it is made for"
            yield Refutation(schedule.built, because, numbers)
        elif schedule.is_of_other and schedule.steps_per is not Unit.EPOCH:
            message = f"`{schedule.kind}` counts evaluation batches, but steps in the training: use the training loader"
            yield Suspicion(schedule.built, message, numbers, related=related)
        elif schedule.steps_per is Unit.STEP and schedule.length_in is Unit.BATCH:
            message = f"`{schedule.kind}` counts batches, but is stepped once for several: divide its length"
            yield Suspicion(schedule.built, message, numbers, related=related)


def _fits(schedule: SchedulerCalls) -> bool:
    return schedule.length is not None and abs(schedule.times - schedule.length) <= max(
        1, NEAR * schedule.length
    )
