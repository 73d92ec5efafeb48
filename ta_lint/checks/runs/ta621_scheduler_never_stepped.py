"""TA621: a learning rate schedule was built and never stepped, while its optimizer trained."""

from collections.abc import Iterator

from ta_lint.events.loop import Stepped
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = (("lr_scheduler", "*schedule*"),)
AROUND = ("*step",)

FEW = 20
"""Steps of the optimizer, where no loader tells that an epoch was over."""


def check_run(run: Run) -> Iterator[Said]:
    for schedule in run.loop.schedulers:
        if schedule.steps:
            yield Refutation(schedule.built, f"it steps {schedule.steps} times", {"steps": schedule.steps})
        elif (
            not run.broke_off
            and not (schedule.is_part or schedule.is_replaced)
            and _has_trained(schedule.optimizer)
        ):
            message = (
                f"`{schedule.kind}` is never stepped, so the learning rate never changes: call its `step()`"
            )
            evidence = {"steps": 0, "steps of the optimizer": schedule.optimizer.steps}
            yield Suspicion(schedule.built, message, evidence)


def _has_trained(optimizer: Stepped) -> bool:
    """Whether it stepped for so long that a schedule of epochs would have stepped as well."""
    return optimizer.passes > 1 or (not optimizer.passes and optimizer.steps >= FEW)
