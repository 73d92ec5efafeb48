"""The models that an optimizer steps and that no loss leads to: they run without recording, or something cuts off what they give."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.memberships import scope_of, unwrapped
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.collect.switches import optimizers_in
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.tensors import DETACHED
from ta_lint.dryrun.values import TRUE, Object
from ta_lint.events.event import Event
from ta_lint.events.graph import GradientReach


def reaches_of(events: list[Event]) -> list[GradientReach]:
    """Those models, by the line of their first call. Nothing is said if a loss or an optimizer is not known in whole."""
    backwards = [event for event in events if event.action == Action.BACKWARD]
    groups = [held_by(one) for one in optimizers_in(events)]
    starts = {one for event in events if event.action == "differentiate" for one in event.detail["starts"]}
    is_known = all(one.complete for one in groups) and not any(one.detail["open"] for one in backwards)
    is_known = is_known and all(one.leaves for one in starts)
    if not is_known or not backwards or any(event.action == "broken off" for event in events):
        return []
    stepped = {id(one) for group in groups for one in group.parameters}
    reached = {id(one) for event in backwards for one in event.detail["roots"] | event.detail["perhaps"]}
    reached |= {
        id(one) for start in starts for one in start.leaves
    }  # whose gradients the program itself uses
    steps = sum(event.times for event in events if event.action == Action.STEP)
    return [
        GradientReach(
            position(calls[0].place),
            position(beside.place),
            own,
            cut=steps if records else 0,
            unrecorded=0 if records else steps,
            starved=steps,
        )
        for model, calls in _called(events).items()
        if (own := _own(model))
        and own <= stepped
        and own.isdisjoint(reached)
        and not any(call.in_library for call in calls)
        and calls[0].detail["training"] == TRUE
        and (beside := _beside(calls[0], backwards, stepped)) is not None
        and (records := _records(calls)) is not None
        and (not records or _is_cut(own, backwards))
    ]


def _records(calls: list[Event]) -> bool | None:
    """Whether autograd records in some of these calls, None if nobody knows."""
    found = {call.detail["recording"] for call in calls}
    return None if None in found else True in found


def _is_cut(own: frozenset[int], backwards: list[Event]) -> bool:
    """Whether a loss is computed from what a model has given, without its graph."""
    cuts = (cut for event in backwards for cut in event.detail["cuts"] if cut.how == DETACHED)
    return any(id(one) in own for cut in cuts for one in cut.roots)


def _called(events: list[Event]) -> dict[Object, list[Event]]:
    """The models with their calls: a model that calls its own layers in a method of another name is one as well."""
    found: dict[Object, list[Event]] = {}
    for event in events:
        if event.action == Action.FORWARD and not event.detail["within"]:
            model = unwrapped(next(filter(is_module, event.detail["callers"]), event.subject))
            found.setdefault(model, []).append(event)
    return found


def _own(model: Object) -> frozenset[int]:
    """The parameters, by id, if all of them are known and take a gradient."""
    group = held(model)
    is_known = not (group.open or group.perhaps) and all(
        one.facts.requires is True for _, one in group.parameters
    )
    return frozenset(id(one) for _, one in group.parameters) if is_known else frozenset()


def _beside(call: Event, backwards: list[Event], stepped: set[int]) -> Event | None:
    """A backward pass of the same part of the program that trains something else."""

    def fitting() -> Iterator[Event]:
        for event in backwards:
            if scope_of(event) == scope_of(call) and any(id(one) in stepped for one in event.detail["roots"]):
                yield event

    return next(fitting(), None)
