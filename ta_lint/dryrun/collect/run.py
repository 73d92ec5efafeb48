"""All facts of a dry run."""

from ta_lint.dryrun.collect.decay import decays_of
from ta_lint.dryrun.collect.frozen import frozen_parts_of
from ta_lint.dryrun.collect.histories import histories_of
from ta_lint.dryrun.collect.losses import backwards_of
from ta_lint.dryrun.collect.memberships import memberships_of
from ta_lint.dryrun.collect.optimizers import optimizers_of
from ta_lint.dryrun.collect.schedules import calls_of, schedulers_of
from ta_lint.dryrun.collect.switches import switches_of
from ta_lint.events.event import Event
from ta_lint.events.loop import Loop
from ta_lint.events.run import Run


def run_of(events: list[Event]) -> Run:
    """The facts that these events make."""
    loop = Loop(
        histories=histories_of(events),
        schedules=calls_of(events),
        optimizers=optimizers_of(events),
        schedulers=schedulers_of(events),
    )
    return Run(
        loop,
        switches=switches_of(events),
        backwards=backwards_of(events),
        memberships=memberships_of(events),
        frozen_parts=frozen_parts_of(events),
        optimizers=[*decays_of(events)],
        broke_off=any(event.action == "broken off" for event in events),
    )
