"""TA607: a learning rate scheduler steps before its optimizer, which skips the first learning rate: swap them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.loop import SchedulerCalls
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("step", ("*sched*", "*lr_*"))


def check_progress(run: Run) -> Iterator[Said]:
    for schedule in run.loop.schedules:
        if not schedule.begins or not schedule.optimizer_steps:
            continue
        if _is_early(schedule):
            message = f"`{schedule.kind}` steps before the optimizer, which skips the first learning rate: swap them"
            related = () if schedule.first is None else ((schedule.first, "the optimizer steps here"),)
            yield Suspicion(schedule.place, message, _evidence(schedule), related=related)
        elif schedule.before_first == 0:
            evidence = {"steps": schedule.times, "before the first of the optimizer": 0}
            because = f"none of its {schedule.times} steps comes before the first of the optimizer"
            yield Refutation(schedule.place, because, evidence)


def _is_early(schedule: SchedulerCalls) -> bool:
    """Whether it took one step too early in a loop; several steps move a schedule to the point where a run resumes."""
    return (
        schedule.before_first == 1
        and schedule.times > 1
        and not schedule.has_argument
        and schedule.first_rate != 0  # of some warm-ups, which is skipped on purpose
    )


def _evidence(schedule: SchedulerCalls) -> dict[str, float]:
    rates = {"skipped learning rate": schedule.first_rate, "first learning rate": schedule.second_rate}
    return {name: rate for name, rate in rates.items() if rate is not None}


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Step the scheduler after its optimizer, if both are in one block."""
    from ta_lint.facts.step_edits import schedule_after

    return schedule_after(module, call)
