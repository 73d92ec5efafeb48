"""TA601: gradients are cleared before the step uses them, or the step comes before they are computed."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.checks.runs import stepping
from ta_lint.core.protocol import Action
from ta_lint.events.loop import Condition, LoopHistory, StepPattern
from ta_lint.events.place import NOWHERE, Place
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion

KEYWORDS = (("zero_grad", "step", "grad"),)
AROUND = ("*backward", "step")
fix = stepping.clear_earlier

FEW = 2
"""Steps without their gradients needed for a finding."""
ACCUMULATED = 3
"""Steps, each after the same number of batches, that make an accumulation,"""
ALIKE = 0.9
"""and how many of all steps they must be: the end of an epoch may have fewer batches, and bad ones may be dropped."""
PASSES = (Action.FORWARD, Action.BACKWARD, Action.UNKNOWN)
"""What computes a loss and its gradients, or may."""


def check_progress(run: Run) -> Iterator[Said]:
    told: set[Place] = set()
    for history in run.loop.histories:
        places = history.places(Action.STEP)
        found = sum((_found(history, place) for place in places), Counter[Condition]())
        for place in places:
            suspicion = _starved(history, place, found) or _overwritten(history, place)
            if suspicion is not None:
                told.add(place)
                yield suspicion
            elif (refutation := _fed(history, place)) is not None:
                yield refutation
    early = (suspicion for history in run.loop.histories for suspicion in _early(history))
    yield from (suspicion for suspicion in early if suspicion.place not in told)


def _starved(history: LoopHistory, place: Place, found: Counter[Condition]) -> Suspicion | None:
    """The clearing that leaves most steps at a place without gradients, of all that steps found. Of a few of them, it may drop bad batches."""
    lost = _lost(history, place)
    if lost.total() < FEW or lost.total() <= found.total() - found[Condition.EMPTY]:
        return None
    clear = next((clear for clear in lost if clear != NOWHERE), place)
    message = "gradients are cleared before the step uses them: call `zero_grad()` after the step"
    evidence = {"steps without gradients": lost.total()}
    return Suspicion(clear, message, evidence, related=((place, "the step"),))


def _fed(history: LoopHistory, place: Place) -> Refutation | None:
    found = _found(history, place)
    used = found[Condition.FRESH] + found[Condition.STALE]
    if used < FEW or _lost(history, place):
        return None
    because = f"all {used} steps found their gradients"
    return Refutation(place, because, {"steps": used, "without gradients": 0})


def _found(history: LoopHistory, place: Place) -> Counter[Condition]:
    """What the steps at a place found."""
    found: Counter[Condition] = Counter()
    for _, step, times in history.ending(place):
        found[step.gradients] += times
    return found


def _lost(history: LoopHistory, place: Place) -> Counter[Place]:
    """The last clearings before steps that they leave without the gradients computed since the step before."""
    lost: Counter[Place] = Counter()
    for pattern, step, times in history.ending(place):
        actions = [event.action for event, _ in pattern]
        if step.gradients is Condition.EMPTY and Action.BACKWARD in actions:
            since = pattern[actions.index(Action.BACKWARD) :]
            clears = [event.place for event, _ in since if event.action is Action.CLEAR]
            lost.update(dict.fromkeys(clears[-1:], times))
    return lost


def _overwritten(history: LoopHistory, place: Place) -> Suspicion | None:
    """The clearing of an accumulation that leaves of each group of batches the gradients of the last one.

    The step must find them as the pass left them: what was kept of the others may have been put back.
    """
    groups: Counter[tuple[Place, int]] = Counter()
    for pattern, step, times in history.ending(place):
        if step.gradients is Condition.FRESH and (group := _cleared_in_each_pass(pattern)) is not None:
            groups[group] += times
    for (clear, passes), times in groups.most_common(1):
        if times >= ACCUMULATED and times >= ALIKE * _found(history, place).total():
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


def _early(history: LoopHistory) -> Iterator[Suspicion]:
    """Steps that come between the forward pass of a loss and its backward pass.

    The linter alone sees them: a run has no forward passes in its histories, as autograd refuses most of these backward passes.
    """
    for place in history.places(Action.STEP):
        early: Counter[Place] = Counter()
        for pattern, _, times in history.ending(place):
            passes = [event for event, _ in pattern if event.action in PASSES]
            if [event.action for event in (*passes[:1], *passes[-1:])] == [Action.BACKWARD, Action.FORWARD]:
                early[passes[0].place] += times
        for backward, times in early.items():
            if times >= FEW and 2 * times >= _found(history, place).total():
                message = "this step changes the weights between a forward pass and its backward pass: step after both"
                yield Suspicion(place, message, related=((backward, "the gradients of the next step"),))
