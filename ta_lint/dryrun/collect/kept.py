"""The states of models that are kept while the models change."""

from dataclasses import dataclass

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.memberships import unwrapped
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.state_dicts import ModuleState, states_in
from ta_lint.dryrun.stubs.torch.tensors import Tensor, written_to
from ta_lint.dryrun.values import Class, Object, Place, Value, options
from ta_lint.events.event import Event
from ta_lint.events.kept import Kept

USES = ("load", "save", "returned")


@dataclass(frozen=True, slots=True)
class _Taken:
    """A state of a model, when it is taken."""

    state: ModuleState
    model: Value
    index: int
    event: Event


def kept_of(events: list[Event]) -> list[Kept]:
    """The first use of each state that its model has changed by then."""
    taken: dict[ModuleState, _Taken] = {}
    found: dict[Place, Kept] = {}
    for index, event in enumerate(events):
        if event.action == "save" and "state" in event.detail:
            state = event.detail["state"]
            taken[state] = _Taken(state, unwrapped(state.fields["of"]), index, event)
        elif event.action in USES and isinstance(used := event.detail.get("state", event.subject), Value):
            for one in filter(None, map(taken.get, states_in(used))):
                if one.event.place not in found and _has_changed(one, index, events, taken):
                    found[one.event.place] = Kept(position(one.event.place), position(event.place))
    return [*found.values()]


def _has_changed(kept: _Taken, used: int, events: list[Event], taken: dict[ModuleState, _Taken]) -> bool:
    """Whether the model is another by then: certainly, or perhaps if the state is that of a pass which the program chooses, as nobody chooses
    among states of a model that stays as it is.
    """
    use, entry = events[used], kept.event.entry
    between = [
        one for one in events[kept.index + 1 : used] if one.entry is entry and _comes_after(one, kept.event)
    ]
    moved = [one for one in events[:used] if one.action == "move" and unwrapped(one.subject) is kept.model]
    there = next((one.detail["to"] for one in reversed(moved) if one not in between), None)
    if any(one.detail["to"] != there for one in moved if one in between) or (
        moved and isinstance(entry, Class)
    ):
        return False
    own = _parameters(kept.model)
    changes = [change for one in between if (change := _changes(one, kept, own)) is not None]
    if isinstance(entry, Class) and use.action == "load" and unwrapped(use.subject) is kept.model:
        changes.append(
            use.passes[:1] != kept.event.passes[:1]
        )  # it would change nothing if the model did not train between the calls
    return any(changes) or (bool(changes) and _is_chosen(kept, use, [*taken.values()]))


def _parameters(model: Value) -> set[Tensor]:
    return (
        {one for _, one in held(model).parameters}
        if isinstance(model, Object) and is_module(model)
        else set()
    )


def _changes(event: Event, kept: _Taken, own: set[Tensor]) -> bool | None:
    """Whether something certainly changes the parameters of a model, or perhaps; None if it does not."""
    if event.action == Action.STEP:
        groups = [held_by(one) for one in options(event.subject) if isinstance(one, Object)]
        if any(not own.isdisjoint(one.parameters) for one in groups):
            return True
        return None if all(one.complete for one in groups) and groups else False
    if event.action == "load" and unwrapped(event.subject) is kept.model:
        return kept.state not in states_in(event.detail["state"]) or None
    if event.action == "write" and written_to(event.subject) in own:
        return True
    return False if event.action == "hand over" and unwrapped(event.subject) is kept.model else None


def _comes_after(event: Event, first: Event) -> bool:
    """Whether what happens later in the order of the dry run may happen after it in the program."""
    around, depth = first.passes, len(first.passes)
    if event.passes[:depth] == around:
        return all(event.path.get(one, holds) is holds for one, holds in first.path.items())
    left = depth - first.leaves
    goes_on = (
        [loop for loop, _ in event.passes[left : left + 1]] == [around[left][0]] if first.leaves else False
    )
    return not (goes_on and event.passes[:left] == around[:left])


def _is_chosen(kept: _Taken, used: Event, taken: list[_Taken]) -> bool:
    """Whether a pass of a loop is chosen by a condition that differs from pass to pass, and the state is used in another pass or later."""
    first = kept.event
    again = [
        one.event
        for one in taken
        if one.event.place == first.place and one.model is kept.model and one.event.passes != first.passes
    ]
    is_same = any(first.path == one.path and first.doubt * 2 <= len(one.path) for one in again if one.doubt)
    chosen = any(not one.in_each_pass for one in (first, *again))
    return bool(again) and chosen and not is_same and used.passes[: len(first.passes)] != first.passes
