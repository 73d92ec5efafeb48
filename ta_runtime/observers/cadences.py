"""What schedulers step for, and what their lengths count, by the numbers of a run."""

from ta_runtime.facts import SchedulerCalls, Unit

_ENDLESS = ("ExponentialLR", "MultiStepLR", "StepLR")
NEAR = 0.1
"""How far from the number of batches a length may be: warm-ups and last batches are rounded."""


def note_cadence(schedule: SchedulerCalls) -> None:
    """What the calls so far say."""
    if schedule.kind in _ENDLESS and schedule.first_rate and schedule.rate is not None:
        schedule.left = schedule.rate / schedule.first_rate
    if schedule.times:
        schedule.length_in = _unit_of_length(schedule)
        schedule.steps_per = _cadence(schedule)


def _cadence(schedule: SchedulerCalls) -> Unit | None:
    if schedule.times >= (1 - NEAR) * schedule.optimizer_steps:
        return Unit.STEP if _between(schedule) >= 2 * (1 - NEAR) else Unit.BATCH
    if schedule.length_in is Unit.STEP and schedule.times <= (schedule.length or 0) / 2:
        return Unit.EPOCH
    return None


def _unit_of_length(schedule: SchedulerCalls) -> Unit | None:
    """What there were as many of as it is long. A length that may count epochs must be met exactly, as it could be met by chance."""
    if schedule.length is None:
        return None
    tolerance = schedule.optimizer_steps / schedule.times if schedule.counts_batches else 0
    if abs(schedule.optimizer_steps - schedule.length) <= tolerance:
        return Unit.STEP
    if schedule.length == schedule.passes and not schedule.counts_batches:
        return Unit.EPOCH if schedule.times >= 2 * schedule.passes else None
    is_all = abs(_batches(schedule) - schedule.length) <= _between(schedule)
    return Unit.BATCH if is_all else None


def _between(schedule: SchedulerCalls) -> float:
    return _batches(schedule) / schedule.times


def _batches(schedule: SchedulerCalls) -> int:
    """The batches of the training up to its last step, those before the first step included."""
    if schedule.times == 1:
        return schedule.batches
    return schedule.batches + round(schedule.batches / schedule.times) - 1
