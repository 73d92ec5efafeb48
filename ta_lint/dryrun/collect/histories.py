"""What happens around the steps of each optimizer, loop by loop."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import SCALE
from ta_lint.dryrun.stubs.torch.gradients import ANYTHING, Conditions, held_by
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor
from ta_lint.dryrun.values import NONE, Known, Object, Place, Unknown, Value, options
from ta_lint.events.event import Event
from ta_lint.events.loop import Condition, LoopHistory, ObservedAction

OF_LAST_STEP = frozenset({Condition.USED, Condition.STALE})
"""What lies in gradients where a pass has stepped before, and where none has."""
NEW = frozenset({Condition.FRESH})
FACTOR = 65536.0
"""That of a gradient scaler of torch at the start."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One action that the gradients of an optimizer see, with what may be in them before it."""

    event: Event
    before: Conditions
    action: Action
    is_scaled: bool | None = None
    """As of `ObservedAction`."""

    def observed(
        self, waits: Any, *, without: Conditions = frozenset(), is_next_batch: bool = False
    ) -> ObservedAction:
        """The action as a run has it, where this condition holds, on the paths that these conditions are not from, if there are others."""
        left = self.before - without or self.before
        certain = len(left) == 1 and not self.event.some_pass and self.event.waits in (None, waits)
        condition = next(iter(left)) if certain else Condition.UNKNOWN
        return ObservedAction(
            self.action, position(self.event.place), condition, self.is_scaled, self.event.detail.get("by") is not None,
            is_next_batch,
        )  # fmt: skip


@dataclass(slots=True)
class Course:
    """What happens to an optimizer in one entry."""

    pending: list[Taken] = field(default_factory=list)
    """The actions after its last step."""
    first: list[Taken] = field(default_factory=list)
    """Those up to its first step."""
    keeps_factor: bool = False
    """Whether something in the program scales losses, and nothing unscales gradients."""


def histories_of(events: list[Event]) -> list[LoopHistory]:
    """The actions that the gradients of an optimizer see, by the entry and the outermost loop around them; none of those that a library
    steps.
    """
    histories: dict[tuple[Object, Value | None, Place | None], LoopHistory] = {}
    courses: dict[tuple[Object, Value | None], Course] = {}
    unowned: dict[Value | None, list[Taken]] = {}
    cleared: dict[Object, dict[Place, Taken]] = {}
    reached, further = set[Tensor](), list[Iterable[Tensor]]()
    did = {event.action for event in events}
    keeps_factor = Action.SCALE in did and Action.UNSCALE not in did
    for event in events:
        before = event.detail.get("before")
        further.append(_leaves(event))
        if event.action == Action.CLIP:
            reached.update(*further)
            further.clear()
        if event.action in (Action.BACKWARD, Action.CLIP) and not before:
            _take_unowned(unowned.setdefault(event.entry, []), event)
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
                course = Course(
                    [*cleared.get(optimizer, {}).values(), *found_before], keeps_factor=keeps_factor
                )
                courses[optimizer, event.entry] = course
            if event.action == Action.CLEAR and event.entry is not None:
                # who calls the next entry may do that first
                clear = Taken(event, ANYTHING, Action.CLEAR)
                cleared.setdefault(optimizer, {}).setdefault(event.place, clear)
            _take(history, course, event, optimizer, found)
    for (optimizer, entry), course in courses.items():
        actions = [*course.pending, *course.first]
        if entry is not None and course.first and not any(one.event.passes for one in actions):
            _step(histories[optimizer, entry, None], course, actions)  # who calls the entry calls it often
    theirs = _stepped_by_libraries(events)
    _note_missing_updates(events, histories)
    return [history for (optimizer, *_), history in histories.items() if optimizer not in theirs]


def _note_missing_updates(
    events: list[Event], histories: dict[tuple[Object, Value | None, Place | None], LoopHistory]
) -> None:
    """A scaler that nothing in the program updates steps again: in a loop, or in a function that is called again on the same object."""
    updated = {
        one for event in events if event.action == Action.UPDATE for one in options(event.subject or NONE)
    }
    for event in events:
        by = event.detail.get("by") if event.action == Action.STEP else None
        is_again = event.times > 1 and (event.passes or (isinstance(by, Object) and by.made is not None))
        if by is not None and is_again and by not in updated:
            loop = event.passes[0][0] if event.passes else None
            for optimizer in event.detail["before"]:
                histories[optimizer, event.entry, loop].without_update = position(event.place)


def _stepped_by_libraries(events: list[Event]) -> set[Object]:
    """The optimizers that a library steps, as a trainer does: when their gradients are cleared is its business, too."""
    return {
        optimizer
        for event in events
        if event.action == Action.STEP and event.in_library
        for optimizer in event.detail["before"]
    }


def _is_of(optimizer: Object, clip: Event, reached: set[Tensor]) -> bool:
    """Whether gradients of an optimizer are clipped, and not those of another model, which an optimizer may hold that nobody knows: it
    holds the parameters, or losses reach them, or no loss is known that reaches any.
    """
    clipped = set(clip.detail["parameters"])
    return not reached or not (
        reached.isdisjoint(clipped) and clipped.isdisjoint(held_by(optimizer).parameters)
    )


def _leaves(event: Event) -> Iterable[Tensor]:
    """The parameters that a backward pass reaches, or one from what a forward pass gives."""
    output = event.detail.get("output")
    return output.roots if isinstance(output, Facts) else event.detail.get("roots", ())


def _take(history: LoopHistory, course: Course, event: Event, optimizer: Object, found: Conditions) -> None:
    """One more action after the last step of an optimizer."""
    is_scaled = event.detail.get("factors", {}).get(optimizer)
    if event.action == Action.BACKWARD and not event.detail["roots"]:
        course.pending.append(Taken(event, found, Action.FORWARD))  # that of a loss that nobody knows
    course.pending.append(Taken(event, found, Action(event.action), is_scaled))
    if event.action == Action.STEP:
        _step(history, course, course.pending)
        course.first = course.first or course.pending
        course.pending = []


def _is_chosen(actions: list[Taken]) -> bool | None:
    """Whether something that the program looks at after unscaling decides whether it steps."""
    step = actions[-1].event
    unscaled = next((one.event for one in reversed(actions) if one.action is Action.UNSCALE), None)
    return None if unscaled is None else step.doubt > unscaled.doubt or not _asked(step) <= _asked(unscaled)


def _asked(event: Event) -> set[tuple[str, bool]]:
    """The conditions around an event, as they are written."""
    return {(condition[0], holds) for condition, holds in event.path.items()}


def _limit_of(value: Value) -> Any:
    """The limit of a clipping, None if it is not known; `...` if it is a multiple of the factor of a scaler."""
    if isinstance(value, Unknown) and value.why == SCALE:
        return ...
    known = value.value if isinstance(value, Known) else None
    return float(known) if isinstance(known, int | float) else None


def _take_unowned(actions: list[Taken], event: Event) -> None:
    """One more action on gradients of which no optimizer is known yet."""
    loss = event.subject.facts.scaled if isinstance(event.subject, Tensor) else None
    is_scaled = loss if event.action == Action.BACKWARD else actions[-1].is_scaled if actions else None
    actions.append(Taken(event, ANYTHING, Action(event.action), is_scaled))


def _is_of_caller(actions: list[Taken]) -> bool:
    """Whether the gradients that a scaler steps on come from who calls the entry."""
    done = {one.action for one in actions}
    return actions[-1].event.detail.get("by") is not None and done <= {
        Action.CLIP,
        Action.STEP,
        Action.FORWARD,
    }


def _step(history: LoopHistory, course: Course, actions: list[Taken]) -> None:
    """One more step, with what comes before it."""
    step = actions[-1].event
    if course.keeps_factor and step.entry is not None and _is_of_caller(actions):
        actions = [replace(one, is_scaled=True) for one in actions]
    for one in actions:
        limit = _limit_of(one.event.detail["limit"]) if one.action is Action.CLIP else ...
        if one.is_scaled and limit is not ...:
            history.limits[position(one.event.place)] = (limit, FACTOR)
    observed = (
        [one.observed(None) for one in actions] if step.waits is None else list(_rounds(actions, step.waits))
    )
    observed[-1] = observed[-1]._replace(is_chosen=_is_chosen(actions))
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
