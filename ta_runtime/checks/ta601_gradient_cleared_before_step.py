"""TA601: gradients are cleared before the step uses them: call `zero_grad()` after the step."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import (
    Condition,
    LoopHistory,
    ObservedAction,
    Refutation,
    Run,
    Said,
    StepPattern,
    Suspicion,
)
from ta_runtime.probes.places import NOWHERE, Place

FEW = 2
"""Steps without their gradients needed for a finding."""
ACCUMULATED = 3
"""Steps, each after the same number of batches, that make an accumulation,"""
ALIKE = 0.9
"""and how many of all steps they must be: the end of an epoch may have fewer batches, and bad ones may be dropped."""


def check_progress(run: Run) -> Iterator[Said]:
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
                message = "gradients are cleared before the step uses them: call `zero_grad()` after the step"
                evidence = {"steps without gradients": count}
                yield Suspicion(line, message, evidence, related=((place, "the step"),))
            elif (suspicion := _overwritten(history, place)) is not None:
                yield suspicion
            elif used[place] >= FEW and not lost:
                because = f"all {used[place]} steps found their gradients"
                yield Refutation(place, because, {"steps": used[place], "without gradients": 0})


def _overwritten(history: LoopHistory, place: Place) -> Suspicion | None:
    """The clearing of an accumulation that leaves of each group of batches the gradients of the last one.

    The step must find them as the pass left them: what was kept of the others may have been put back.
    """
    groups: Counter[tuple[Place, int]] = Counter()
    steps = 0
    for pattern, step, times in history.ending(place):
        steps += times
        if step.gradients is Condition.FRESH and (group := _cleared_in_each_pass(pattern)) is not None:
            groups[group] += times
    for (clear, passes), times in groups.most_common(1):
        if times >= ACCUMULATED and times >= ALIKE * steps:
            message = "only the last batch of each step counts: clear the gradients after the step, not in each pass"
            evidence = {"steps": times, "backward passes of each": passes}
            return Suspicion(clear, message, evidence, related=((place, "the step"),))
    return None


def _cleared_in_each_pass(pattern: StepPattern) -> tuple[Place, int] | None:
    """Where gradients are cleared between one backward pass and the next, each at one line and of a batch of its own.

    And of how many passes. Passes over one batch may be about something else: an attack, or a gradient for each task.
    """
    events = [event for event, _ in pattern if event.action in (Action.CLEAR, Action.BACKWARD)]
    first = next((number for number, event in enumerate(events) if event.action is Action.BACKWARD), 0)
    passes, clears = events[first::2], events[first + 1 :: 2]
    if (
        len(passes) != len(clears) + 1
        or not clears
        or any(event.action is not Action.BACKWARD for event in passes)
        or any(event.action is not Action.CLEAR or event.gradients is not Condition.FRESH for event in clears)
        or not all(event.is_next_batch for event in passes[1:])
        or len({event.place for event in passes}) > 1
        or len({event.place for event in clears}) > 1
    ):
        return None
    return clears[0].place, len(passes)


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
