"""TA662: a schedule stepped once per process of Accelerate, but its length is that of one process."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, SchedulerCalls, Suspicion

FEW = 4
"""Steps of an optimizer from which on the unit of a schedule shows."""
NEAR = 0.1
"""How far from its length a schedule may end: warm-ups and last batches are rounded."""


def check_run(run: Run) -> Iterator[Said]:
    processes = run.prepared.processes
    for schedule in run.loop.schedules if processes > 1 else ():
        steps = _optimizer_steps(schedule, run)
        if schedule.length is None or steps < FEW or schedule.has_argument or not schedule.begins:
            continue
        numbers: dict[str, float | int | str] = {
            "laid out for": schedule.length,
            "steps of the schedule": schedule.times,
            "steps of the optimizer": steps,
            "processes": processes,
        }
        if _is_near(schedule.times, schedule.length) and not _is_near(steps, schedule.length):
            because = f"it makes {schedule.times} of its {schedule.length} steps, with {processes} processes"
            yield Refutation(schedule.built, because, numbers)
        elif _repeats(schedule, processes) and _is_near(steps, schedule.length):
            message = f"`{schedule.kind}` steps {processes} times per optimizer step and ends early: scale its length"
            yield Suspicion(schedule.built, message, numbers, related=((schedule.place, "it steps here"),))


def _repeats(schedule: SchedulerCalls, processes: int) -> bool:
    """Whether it stepped once for each process with each step of the optimizer, up to its end."""
    return _is_near(schedule.times, processes * schedule.optimizer_steps)


def _optimizer_steps(schedule: SchedulerCalls, run: Run) -> int:
    """The steps of its optimizer in the whole run: a schedule that is at its end may be stepped no more."""
    whole = [one.optimizer.steps for one in run.loop.schedulers if one.built == schedule.built]
    return max([schedule.optimizer_steps, *whole])


def _is_near(count: int, length: int) -> bool:
    return abs(count - length) <= max(1, NEAR * length)
