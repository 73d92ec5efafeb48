"""What happens around the steps of each optimizer, loop by loop."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import ANYTHING, Conditions, held_by
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor
from ta_lint.dryrun.values import Object, Place, Value
from ta_lint.events.event import Event
from ta_lint.events.loop import Condition, LoopHistory, ObservedAction

OF_LAST_STEP = frozenset({Condition.USED, Condition.STALE})
"""What lies in gradients where a pass has stepped before, and where none has."""
NEW = frozenset({Condition.FRESH})


@dataclass(frozen=True, slots=True)
class Taken:
    """One action that the gradients of an optimizer see, with what may be in them before it."""

    event: Event
    before: Conditions
    action: Action

    def observed(
        self, waits: Any, *, without: Conditions = frozenset(), is_next_batch: bool = False
    ) -> ObservedAction:
        """The action as a run has it, where this condition holds, on the paths that these conditions are not from, if there are others."""
        left = self.before - without or self.before
        certain = len(left) == 1 and not self.event.some_pass and self.event.waits in (None, waits)
        condition = next(iter(left)) if certain else Condition.UNKNOWN
        return ObservedAction(self.action, position(self.event.place), condition, is_next_batch=is_next_batch)


@dataclass(slots=True)
class Course:
    """What happens to an optimizer in one entry."""

    pending: list[Taken] = field(default_factory=list)
    """The actions after its last step."""
    first: list[Taken] = field(default_factory=list)
    """Those up to its first step."""


def histories_of(events: list[Event]) -> list[LoopHistory]:
    """The actions that the gradients of an optimizer see, by the entry and the outermost loop around them; none of those that a library
    steps.
    """
    histories: dict[tuple[Object, Value | None, Place | None], LoopHistory] = {}
    courses: dict[tuple[Object, Value | None], Course] = {}
    unowned: dict[Value | None, list[Taken]] = {}
    cleared: dict[Object, dict[Place, Taken]] = {}
    reached: set[int] = set()
    for event in events:
        before = event.detail.get("before")
        reached.update(map(id, _leaves(event)))
        if event.action == Action.BACKWARD and not before:
            unowned.setdefault(event.entry, []).append(Taken(event, ANYTHING, Action.BACKWARD))
        for optimizer, found in (before or {}).items():
            if event.action == Action.CLIP and not _is_of(optimizer, event, reached):
                continue
            loop = event.passes[0][0] if event.passes else None
            history = histories.setdefault(
                (optimizer, event.entry, loop), LoopHistory(position(loop) if loop else None)
            )
            course = courses.get((optimizer, event.entry))
            if course is None:
                found_before = unowned.pop(event.entry, []) if optimizer.made is None else []
                course = Course([*cleared.get(optimizer, {}).values(), *found_before])
                courses[optimizer, event.entry] = course
            if event.action == Action.CLEAR and event.entry is not None:
                # who calls the next entry may do that first
                clear = Taken(event, ANYTHING, Action.CLEAR)
                cleared.setdefault(optimizer, {}).setdefault(event.place, clear)
            _take(history, course, event, found)
    for (optimizer, entry), course in courses.items():
        actions = [*course.pending, *course.first]
        if entry is not None and course.first and not any(one.event.passes for one in actions):
            _step(histories[optimizer, entry, None], actions)  # who calls the entry calls it often
    theirs = _stepped_by_libraries(events)
    return [history for (optimizer, *_), history in histories.items() if optimizer not in theirs]


def _stepped_by_libraries(events: list[Event]) -> set[Object]:
    """The optimizers that a library steps, as a trainer does: when their gradients are cleared is its business, too."""
    return {
        optimizer
        for event in events
        if event.action == Action.STEP and event.in_library
        for optimizer in event.detail["before"]
    }


def _is_of(optimizer: Object, clip: Event, reached: set[int]) -> bool:
    """Whether gradients of an optimizer are clipped, and not those of another model, which an optimizer may hold that nobody knows: it
    holds the parameters, or losses reach them, or no loss is known that reaches any.
    """
    held = {id(one) for one in held_by(optimizer).parameters}
    return not reached or not (held | reached).isdisjoint(map(id, clip.detail["parameters"]))


def _leaves(event: Event) -> Iterable[Tensor]:
    """The parameters that a backward pass reaches, or one from what a forward pass gives."""
    output = event.detail.get("output")
    return output.roots if isinstance(output, Facts) else event.detail.get("roots", ())


def _take(history: LoopHistory, course: Course, event: Event, found: Conditions) -> None:
    """One more action after the last step of an optimizer."""
    if event.action == Action.BACKWARD and not event.detail["roots"]:
        course.pending.append(Taken(event, found, Action.FORWARD))  # that of a loss that nobody knows
    course.pending.append(Taken(event, found, Action(event.action)))
    if event.action == Action.STEP:
        _step(history, course.pending)
        course.first = course.first or course.pending
        course.pending = []


def _step(history: LoopHistory, actions: list[Taken]) -> None:
    """One more step, with what comes before it."""
    step = actions[-1].event
    observed = (
        [one.observed(None) for one in actions] if step.waits is None else list(_rounds(actions, step.waits))
    )
    history.patterns[tuple((one, 1) for one in observed)] += step.times
    history.kept += observed[-1].gradients is Condition.STALE


def _rounds(pending: list[Taken], waits: Any) -> Iterator[ObservedAction]:
    """The actions up to a step that comes every few passes of its loop: what is left of the pass with the last step, a pass without one,
    and the one with this step.
    """
    now = pending[-1].event.passes
    left = [one for one in pending if one.event.passes[: len(now)] != now]
    this = pending[len(left) :]
    each_pass = [one for one in this if one.event.waits is None]
    yield from (one.observed(waits, without=NEW) for one in left)
    has_pass_without = not {one.event.place for one in left}.isdisjoint(one.event.place for one in this)
    if not has_pass_without:
        yield from (one.observed(waits, without=NEW) for one in each_pass)
        yield from (
            one.observed(waits, without=OF_LAST_STEP)
            for one in left
            if one.event.certain and one.event.waits is None
        )
    for one in this:
        yield one.observed(waits, without=OF_LAST_STEP, is_next_batch=one.action is Action.BACKWARD)
