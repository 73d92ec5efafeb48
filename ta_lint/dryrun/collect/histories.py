"""What happens around the steps of each optimizer, loop by loop."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import Conditions
from ta_lint.dryrun.values import Object, Place
from ta_lint.events.event import Event
from ta_lint.events.loop import Condition, LoopHistory, ObservedAction


def histories_of(events: list[Event]) -> list[LoopHistory]:
    """The actions that the gradients of an optimizer see, with the outermost loop around them; none of those that a library steps."""
    histories: dict[tuple[Object, Place | None], LoopHistory] = {}
    pending: dict[Object, list[ObservedAction]] = {}
    for event in events:
        for optimizer, found in event.detail.get("before", {}).items():
            loop = event.passes[0][0] if event.passes else None
            history = histories.setdefault((optimizer, loop), LoopHistory(position(loop) if loop else None))
            _take(history, pending.setdefault(optimizer, []), event, found)
    theirs = _stepped_by_libraries(events)
    return [history for (optimizer, _), history in histories.items() if optimizer not in theirs]


def _stepped_by_libraries(events: list[Event]) -> set[Object]:
    """The optimizers that a library steps, as a trainer does: when their gradients are cleared is its business, too."""
    return {
        optimizer
        for event in events
        if event.action == Action.STEP and event.in_library
        for optimizer in event.detail["before"]
    }


def _take(history: LoopHistory, pending: list[ObservedAction], event: Event, found: Conditions) -> None:
    """One more action after the last step of an optimizer."""
    action = Action(event.action)
    certain = len(found) == 1 and not event.some_pass
    condition = next(iter(found)) if certain else Condition.UNKNOWN
    pending.append(ObservedAction(action, position(event.place), condition))
    if action is Action.STEP:
        history.patterns[tuple((one, 1) for one in pending)] += event.times
        history.kept += condition is Condition.STALE
        pending.clear()
