"""TA601: gradients are cleared between the backward pass and the step, so the step has none."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, LoopHistory, ObservedAction, Refutation, Run, StepPattern, Suspicion
from ta_runtime.probes.places import NOWHERE, Place

FEW = 2
"""Steps without their gradients needed for a finding."""


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for history in run.loop.histories:
        places = history.places(Action.STEP)
        used = {place: _used(history, place) for place in places}
        for place in places:
            lost = [
                (clear, times)
                for pattern, step, times in history.ending(place)
                if (clear := _cleared_between(pattern, step)) is not None
            ]
            count = sum(times for _, times in lost)
            if count >= FEW and count > sum(used.values()):  # else a bad batch may be dropped by it
                line = next((clear.place for clear, _ in lost if clear.place != NOWHERE), place)
                message = "gradients are cleared between the backward pass and the step, so the step has none"
                evidence = {"steps without gradients": count}
                yield Suspicion(line, message, evidence, related=((place, "the step"),))
            elif used[place] >= FEW and not lost:
                yield Refutation(place, {"steps": used[place], "without gradients": 0})


def _used(history: LoopHistory, place: Place) -> int:
    """How many steps at a place found gradients."""
    has = (Condition.FRESH, Condition.STALE)
    return sum(times for _, step, times in history.ending(place) if step.gradients in has)


def _cleared_between(pattern: StepPattern, step: ObservedAction) -> ObservedAction | None:
    """The last clearing before a step, if it removed all gradients computed since the previous step."""
    actions = [event.action for event, _ in pattern]
    if step.gradients is not Condition.EMPTY or Action.BACKWARD not in actions:
        return None
    after = [event for event, _ in pattern[actions.index(Action.BACKWARD) :] if event.action is Action.CLEAR]
    return after[-1] if after else None
