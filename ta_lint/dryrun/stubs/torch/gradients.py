"""What lies in `.grad` of the parameters of each optimizer: nothing, new gradients, or those that a step has used."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Mergeable, Object, Sequence, Table, Value, options
from ta_lint.events.loop import Condition

GRADIENTS = ("the gradients of an optimizer",)
"""The key of what lies there among the fields of an optimizer, which no attribute has."""

MOST_OPTIMIZERS = 8

Conditions = frozenset[Condition]
"""One of these, depending on the path."""
NOTHING: Conditions = frozenset({Condition.EMPTY})
ANYTHING: Conditions = frozenset({Condition.UNKNOWN})

_COMPUTED = {
    Condition.EMPTY: Condition.FRESH,
    Condition.FRESH: Condition.FRESH,
    Condition.USED: Condition.STALE,
    Condition.STALE: Condition.STALE,
    Condition.UNKNOWN: Condition.UNKNOWN,
}
"""What lies there after a backward pass, by what lay there before."""


@dataclass(frozen=True, slots=True)
class Lying(Mergeable):
    """What lies there now."""

    conditions: Conditions
    cleared: frozenset[int] = frozenset()
    """The parameters, by id, that have been cleared one by one since gradients were last computed."""
    touched: bool = False
    """Whether something has cleared some of them since the last step, or may have."""

    def either(self, other: "Lying") -> "Lying":
        """What lies there on one of two paths."""
        return Lying(
            self.conditions | other.conditions, self.cleared & other.cleared, self.touched or other.touched
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The parameters of one group of an optimizer, and whether these are all."""

    parameters: tuple[Tensor, ...]
    complete: bool


def held_by(optimizer: Object) -> Group:
    """What an optimizer updates."""
    groups = optimizer.fields.get("param_groups")
    found: dict[int, Tensor] = {}
    complete = isinstance(groups, Sequence) and groups.rest is None
    for group in groups.items if isinstance(groups, Sequence) else ():
        parameters = group.fields.get("params") if isinstance(group, Table) else None
        if not isinstance(parameters, Sequence) or parameters.rest is not None:
            complete = False
        for one in parameters.items if isinstance(parameters, Sequence) else ():
            if isinstance(one, Tensor):
                found[id(one)] = one
            else:
                complete = False
    return Group(tuple(found.values()), complete)


def watch(machine: Machine, optimizer: Object, conditions: Conditions = NOTHING) -> None:
    """From here on it is known what lies in the gradients of a new optimizer. Of many, those made last are followed."""
    if len(machine.optimizers) - machine.own >= MOST_OPTIMIZERS:
        oldest = machine.optimizers.pop(machine.own)
        machine.emit("unknown", ast.Pass(), None, before={oldest: lying(oldest)})
        oldest.fields.pop(GRADIENTS, None)
    machine.optimizers.append(optimizer)
    optimizer.fields[GRADIENTS] = Lying(conditions)


def lying(optimizer: Object) -> Conditions:
    """What lies in its gradients."""
    found = optimizer.fields.get(GRADIENTS)
    return found.conditions if isinstance(found, Lying) else ANYTHING


Before = dict[Object, Conditions]
"""The optimizers to whose gradients something happens, each with what lay there before."""


def computed(machine: Machine, certain: Iterable[Tensor], *, complete: bool) -> Before:
    """A backward pass reaches these leaves, and perhaps others unless that is complete. What nobody knows is taken to reach the only
    optimizer that there is.
    """
    concerned, perhaps = _concerned(machine, certain, complete=complete)
    before = {one: lying(one) for one in (*concerned, *perhaps)}
    for one in concerned:
        _write(machine, one, frozenset(_COMPUTED[each] for each in lying(one)))
    for one in perhaps:
        _write(machine, one, lying(one) | {_COMPUTED[each] for each in lying(one)})
    return before


def cleared(
    machine: Machine, subject: Value | None, parameters: Iterable[Tensor], *, complete: bool
) -> Before:
    """Gradients are cleared: all of an optimizer, those of a module, or that of one parameter."""
    if isinstance(subject, Object) and subject in machine.optimizers:
        before = {subject: lying(subject)}
        _write(machine, subject, NOTHING, touched=True)
        return before
    parameters = list(parameters)
    given = {id(one) for one in parameters}
    concerned, perhaps = _concerned(machine, parameters, complete=complete)
    before = {one: lying(one) for one in (*concerned, *perhaps)}
    for one in before:
        group, found = held_by(one), one.fields.get(GRADIENTS)
        done = given | found.cleared if isinstance(found, Lying) else given
        if group.complete and complete:
            whole = all(id(each) in done for each in group.parameters)
        else:
            whole = len(before) == 1 and not isinstance(subject, Tensor)
        _write(machine, one, NOTHING if whole else lying(one) | NOTHING, frozenset(done), touched=True)
    return before


def assigned(machine: Machine, parameter: Tensor) -> Before:
    """The program itself writes the gradient of a parameter."""
    before = cleared(machine, parameter, (parameter,), complete=True)
    for one in before:
        _write(machine, one, before[one] | {Condition.FRESH}, touched=True)
    return before


def used(machine: Machine, optimizer: Value) -> Before:
    """A step uses what lies there. If only some passes step, or nobody knows which backward pass reaches them, new gradients still join
    old ones sooner or later, unless something clears them in between.
    """
    before = {}
    for one in options(optimizer):
        state = one.fields.get(GRADIENTS) if isinstance(one, Object) else None
        if isinstance(one, Object) and isinstance(state, Lying):
            joins = Condition.STALE in state.conditions and not state.touched
            before[one] = found = frozenset({Condition.STALE}) if joins else state.conditions
            after = frozenset(each if each is Condition.EMPTY else Condition.USED for each in found)
            _write(machine, one, after if one is optimizer else after | found, touched=False)
    return before


def enter_loop(machine: Machine) -> None:
    """What has certainly been cleared before a loop is not cleared between its passes."""
    for one in machine.optimizers:
        if len(lying(one)) == 1:
            _write(machine, one, lying(one), touched=False)


def lost(machine: Machine, *optimizers: Object) -> Before:
    """Code out of sight may do anything with them."""
    before = {one: lying(one) for one in optimizers}
    for one in optimizers:
        _write(machine, one, ANYTHING, touched=True)
    return before


def _write(
    machine: Machine,
    optimizer: Object,
    conditions: Conditions,
    cleared: frozenset[int] = frozenset(),
    *,
    touched: bool | None = None,
) -> None:
    now = optimizer.fields.get(GRADIENTS)
    before = now.touched if isinstance(now, Lying) else True
    after = Lying(conditions, cleared, before if touched is None else touched)
    if after != now:
        machine.state.write(optimizer.fields, GRADIENTS, after)


def _concerned(
    machine: Machine, parameters: Iterable[Tensor], *, complete: bool
) -> tuple[list[Object], list[Object]]:
    """The optimizers that hold some of these parameters, and those that perhaps do: those that the entry has of its own, if it has any."""
    given = {id(one) for one in parameters}
    certain, perhaps = [], []
    for optimizer in machine.optimizers:
        group = held_by(optimizer)
        if any(id(one) in given for one in group.parameters):
            certain.append(optimizer)
        elif not (complete and group.complete):
            perhaps.append(optimizer)
    perhaps = [one for one in perhaps if one in machine.optimizers[machine.own :]] or perhaps
    return (perhaps, []) if not certain and len(perhaps) == 1 else (certain, perhaps)
