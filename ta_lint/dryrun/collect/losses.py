"""Where the losses of the backward passes lead, and where the graphs end of those that train nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.tensors import (
    DETACHED,
    FIRST_ORDER,
    IN_STEPS,
    UNRECORDED,
    ZERO,
    Cut,
    Forced,
    Tensor,
)
from ta_lint.dryrun.values import Object, Place
from ta_lint.events.event import Event
from ta_lint.events.graph import Backward, End, Lost

_HOW = {
    DETACHED: Lost.DETACHED,
    FIRST_ORDER: Lost.FIRST_ORDER,
    IN_STEPS: Lost.STEPPED,
    ZERO: Lost.STEPPED,
    UNRECORDED: Lost.UNRECORDED,
}


def backwards_of(events: list[Event]) -> list[Backward]:
    """The backward passes, line by line. Those of a trainer are left out. Of a loss that may lead anywhere nothing is said, and a part whose gradient somebody wants is not
    forced; the loss itself is often logged.
    """
    trained = _trained(events)
    wanted = [event for event in events if event.action == "gradient"]
    read = {event.subject for event in wanted if not event.detail["handed"]}
    handed = {event.subject for event in wanted if event.detail["handed"]}
    is_scaled = any(event.action in (Action.SCALE, Action.UPDATE) for event in events)
    found: dict[Place, Backward] = {}
    for event in events:
        if event.action == Action.BACKWARD and not event.in_library:
            used = read | (handed - {event.subject})
            forced = [
                part
                for part in event.detail["forced"]
                if part.tensor not in used and part.tensor not in trained
            ]
            backward = found.setdefault(event.place, Backward(position(event.place)))
            _take(backward, event, forced, trained)
            backward.in_half += event.detail["half"] and not (is_scaled or event.by_library)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Trained:
    """The parameters, by id, that the optimizers of a program hold, and whether these are certainly all that it trains."""

    held: set[int]
    complete: bool

    def __contains__(self, parameter: Tensor) -> bool:
        return id(parameter) in self.held


def _trained(events: list[Event]) -> _Trained:
    optimizers = {event.subject for event in events if event.action == "optimizer"}
    steps = {event.subject for event in events if event.action == Action.STEP}
    groups = [held_by(each) for each in optimizers if isinstance(each, Object)]
    held = {id(one) for group in groups for one in group.parameters}
    return _Trained(held, steps <= optimizers and all(group.complete for group in groups))


def _take(backward: Backward, event: Event, forced: Sequence[Forced], trained: _Trained) -> None:
    """One more backward pass of a line; some parts of its loss were told to require a gradient."""
    detail = event.detail
    for part in forced:
        backward.forced += 1
        _add(backward, End(Lost.FORCED, position(part.place), code(part.place)))
    leaves = {part.tensor for part in forced}
    reached = detail["roots"] - detail["flat"] - leaves
    if reached:
        backward.through += 1
        backward.parameters = max(backward.parameters, len(reached))
    elif any(part.tensor in detail["roots"] and part.place == part.tensor.made for part in forced):
        pass  # a new leaf of old numbers: that it is forced says all
    elif detail["cuts"] and not detail["open"] and not detail["perhaps"] - detail["flat"]:
        cut = _blamed(detail["cuts"], trained)
        end = End(_HOW[cut.how], position(cut.place), code(cut.place))
        if end.how is Lost.UNRECORDED and event.in_library:
            return  # no line of the program begins the pass
        backward.cut += end.how in (Lost.DETACHED, Lost.FIRST_ORDER)
        backward.stepped += end.how is Lost.STEPPED
        backward.unrecorded += end.how is Lost.UNRECORDED
        _add(backward, end)


def _add(backward: Backward, end: End) -> None:
    if end not in backward.ends:
        backward.ends.append(end)


def _blamed(cuts: Sequence[Cut], trained: _Trained) -> Cut:
    """The last cut from parameters that are trained: those before it have left some of the graph. Of several, the first. Where nothing was
    recorded, the first of these.
    """

    def is_from_trained(cut: Cut) -> bool:
        return any(one in trained for one in cut.roots)

    able = [one for one in cuts if is_from_trained(one)] if trained.complete else []
    able = able or list(cuts)
    last = max(able, key=lambda one: (one.after, is_from_trained(one)))
    return next(one for one in able if one.how == UNRECORDED) if last.how == UNRECORDED else last
