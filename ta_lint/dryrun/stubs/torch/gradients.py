"""What is in `.grad` of the parameters of each optimizer: nothing, new gradients, or those that a step has used."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Function, Hidden, Mergeable, Object, Sequence, Table, Value, options
from ta_lint.events.loop import Condition

GRADIENTS = Hidden("what is in the gradients of an optimizer")
MOST_OPTIMIZERS = 8
"""Optimizers of an entry that are followed: of more, those made last."""

Conditions = frozenset[Condition]
"""One of these, depending on the path."""
NOTHING: Conditions = frozenset({Condition.EMPTY})
ANYTHING: Conditions = frozenset({Condition.UNKNOWN})
_NONE: Conditions = frozenset()

Assumed = frozenset[tuple[Any, bool]]
"""Conditions, each with whether it holds, as `machine.assumed` has them."""
_NO_CONDITION: Assumed = frozenset()

_COMPUTED = {
    Condition.EMPTY: Condition.FRESH,
    Condition.FRESH: Condition.FRESH,
    Condition.USED: Condition.STALE,
    Condition.STALE: Condition.STALE,
    Condition.UNKNOWN: Condition.UNKNOWN,
}
"""What is there after a backward pass, by what was there before."""


@dataclass(frozen=True, slots=True)
class Contents(Mergeable):
    """What is in the gradients of an optimizer now."""

    conditions: Conditions
    untouched: Conditions
    """Those of them on paths where nothing can have cleared anything since the last step."""
    clearings: int = 0
    """How often something has cleared, or may have, on the way to here."""
    by: frozenset[Function | None] = frozenset()
    """The functions that did, None for the script itself."""
    cleared: frozenset[int] = frozenset()
    """The parameters, by id, that have been cleared one by one since gradients were last computed."""
    scaled: bool | None = False
    """Whether they hold the factor of a gradient scaler, None if nobody knows, or it depends:"""
    where: Assumed = _NO_CONDITION
    """they do where one of these conditions holds, as it was asked when the loss was scaled, and do not where it fails."""
    under: Assumed = _NO_CONDITION
    """The conditions that held when this was last decided."""

    def either(self, other: "Contents") -> "Contents":
        """What is there on one of two paths. If they do not clear alike, a clearing may lie between two steps on both."""
        both_alike = (self.clearings, self.by) == (other.clearings, other.by)
        return Contents(
            self.conditions | other.conditions,
            self.untouched | other.untouched if both_alike else _NONE,
            max(self.clearings, other.clearings),
            self.by | other.by,
            self.cleared & other.cleared,
            **_scaled_of(self, other),
        )

    def is_settled(self, before: "Contents | None") -> bool:
        """Whether the next pass finds the same gradients, or the pass has cleared them itself."""
        if before is None or self.clearings != before.clearings:
            return True
        return self.conditions == before.conditions

    def touched(self, conditions: Conditions, by: Function | None, cleared: Iterable[int] = ()) -> "Contents":
        """What is there once a function has cleared, or may have."""
        known: dict[str, Any] = (
            {} if conditions == NOTHING else {"scaled": self.scaled, "where": self.where, "under": self.under}
        )
        return Contents(conditions, _NONE, self.clearings + 1, self.by | {by}, frozenset(cleared), **known)

    def with_more(self, scaled: bool | None, under: Assumed) -> "Contents":
        """What is there after a backward pass from a loss that a scaler has scaled, or not."""
        if scaled is False or self.scaled:
            scaled = self.scaled
        return replace(
            self, conditions=_computed(self.conditions), untouched=_computed(self.untouched), cleared=frozenset(),
            scaled=scaled, where=self.where if scaled is None else _NO_CONDITION, under=under,
        )  # fmt: skip

    def scaled_under(self, holding: Assumed) -> bool | None:
        """Whether they hold the factor on a path where these conditions hold."""
        for condition, holds in self.where:
            if (condition, holds) in holding:
                return True
            if (condition, not holds) in holding:
                return False
        return self.scaled


def _scaled_of(one: Contents, other: Contents) -> dict[str, Any]:
    """What is known of the factor where two paths meet: nothing speaks against it where there are no gradients."""
    if NOTHING in (one.conditions, other.conditions):
        one = other if one.conditions == NOTHING else one
        return {"scaled": one.scaled, "where": one.where, "under": one.under}
    under = one.under & other.under
    first = one.scaled_under(_opposite(other.under - under))
    second = other.scaled_under(_opposite(one.under - under))
    if first is second:
        return {"scaled": first, "where": one.where & other.where, "under": under}
    if None in (first, second):
        return {"scaled": None, "under": under}
    holds, fails = (one, other) if first else (other, one)
    return {"scaled": None, "where": holds.under & _opposite(fails.under), "under": under}


def _opposite(conditions: Assumed) -> Assumed:
    return frozenset((condition, not holds) for condition, holds in conditions)


@dataclass(frozen=True, slots=True)
class Group:
    """The parameters of one group of an optimizer, and whether these are all."""

    parameters: tuple[Tensor, ...]
    complete: bool


def groups_of(optimizer: Value, *, further: bool = False) -> list[Table]:
    """The groups of an optimizer that are known, with what stands for `further` ones."""
    groups = optimizer.fields.get("param_groups") if isinstance(optimizer, Object) else None
    if not isinstance(groups, Sequence):
        return []
    return [one for one in (groups.every if further else groups.items) if isinstance(one, Table)]


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
    # torch builds no optimizer that holds nothing
    return Group(tuple(found.values()), complete and bool(found))


def watch(machine: Machine, optimizer: Object, conditions: Conditions = NOTHING) -> None:
    """From here on a new optimizer is followed."""
    del machine.optimizers[machine.own : len(machine.optimizers) - MOST_OPTIMIZERS + 1]
    machine.optimizers.append(optimizer)
    optimizer.fields[GRADIENTS] = Contents(conditions, conditions)


Before = dict[Object, Conditions]
"""The optimizers to whose gradients something happens, each with what was there before."""


def seen(machine: Machine, parameters: Iterable[Tensor], *, complete: bool = True) -> Before:
    """The optimizers of parameters that something uses or changes, without computing or clearing their gradients."""
    concerned, _ = _concerned(machine, parameters, complete=complete)
    return _conditions(concerned)


def computed(machine: Machine, certain: Iterable[Tensor], *, complete: bool, scaled: bool | None) -> Before:
    """A backward pass reaches these leaves, and perhaps others unless that is complete. What nobody knows is taken to reach the only
    optimizer that there is. `scaled` says whether a gradient scaler has scaled the loss.
    """
    concerned, perhaps = _concerned(machine, certain, complete=complete)
    before = _conditions((*concerned, *perhaps))
    for one in before:
        now: Contents = one.fields[GRADIENTS]
        after = now.with_more(scaled, _assumed(machine))
        _write(machine, one, after if one in concerned else after.either(now))
    return before


def _computed(conditions: Conditions) -> Conditions:
    return frozenset(_COMPUTED[each] for each in conditions)


def cleared(
    machine: Machine, subject: Value | None, parameters: Iterable[Tensor], *, complete: bool
) -> Before:
    """Gradients are cleared: all of an optimizer, those of a module, or that of one parameter."""
    if isinstance(subject, Object) and GRADIENTS in subject.fields:
        before = _conditions([subject])
        _touch(machine, subject, NOTHING)
        return before
    given = {id(one): one for one in parameters}
    before = _conditions(
        each for some in _concerned(machine, given.values(), complete=complete) for each in some
    )
    for one, found in before.items():
        group, done = held_by(one), one.fields[GRADIENTS].cleared | given.keys()
        whole = group.complete and complete and all(id(each) in done for each in group.parameters)
        _touch(machine, one, NOTHING if whole else found | NOTHING, done)
    return before


def perhaps_computed(machine: Machine, optimizers: Iterable[Object]) -> None:
    """Where nothing is there, new gradients are perhaps: code out of sight may have computed them, or put them back."""
    for one in optimizers:
        now: Contents = one.fields[GRADIENTS]
        if Condition.EMPTY in now.conditions:
            _write(machine, one, replace(now, conditions=now.conditions | {Condition.FRESH}))


def perhaps_computed_of(machine: Machine, parameters: Iterable[Tensor], *, complete: bool) -> Before:
    """The same of all optimizers that hold these parameters, or perhaps do."""
    before = _conditions(one for some in _concerned(machine, parameters, complete=complete) for one in some)
    perhaps_computed(machine, before)
    return before


def assigned(machine: Machine, parameter: Tensor) -> Before:
    """The program itself writes the gradient of a parameter."""
    before = cleared(machine, parameter, (parameter,), complete=True)
    for one, found in before.items():
        _touch(machine, one, found | {Condition.FRESH})
    rescaled(machine, before)
    return before


def _assumed(machine: Machine) -> Assumed:
    return frozenset(machine.assumed.items())


def factors(
    machine: Machine, optimizers: Iterable[Value], *, anywhere: bool = False
) -> dict[Value, bool | None]:
    """Whether the gradients of each of these optimizers hold the factor of a gradient scaler, None if nobody knows; `anywhere` asks for any
    path.
    """
    found: dict[Value, bool | None] = {}
    for one in optimizers:
        now = one.fields.get(GRADIENTS) if isinstance(one, Object) else None
        if isinstance(now, Contents):
            held = now.scaled_under(_assumed(machine))
            found[one] = True if held is None and now.where and anywhere else held
    return found


def unscaled(machine: Machine, optimizer: Value) -> Before:
    """A scaler takes its factor from the gradients of an optimizer; if nobody knows which, perhaps of any."""
    known = [one for one in options(optimizer) if one in machine.optimizers and isinstance(one, Object)]
    is_certain = len(known) == 1 or machine.are_alternatives(known)
    before = _conditions(known or machine.optimizers)
    for one in before:
        _decide(machine, one, scaled=False if is_certain else None)
    return before


def _decide(machine: Machine, optimizer: Object, *, scaled: bool | None) -> None:
    now = optimizer.fields[GRADIENTS]
    _write(machine, optimizer, replace(now, scaled=scaled, where=_NO_CONDITION, under=_assumed(machine)))


def rescaled(machine: Machine, optimizers: Iterable[Object]) -> None:
    """The program, or code out of sight, perhaps multiplies gradients: whether they still hold a factor, nobody knows."""
    several = tuple(optimizers)
    machine.emit("rescale", ast.Pass(), of=several)
    for one in several:
        _decide(machine, one, scaled=None)


def rescaled_of(machine: Machine, parameters: Iterable[Tensor]) -> None:
    """The same of all optimizers that hold these parameters, or perhaps do."""
    rescaled(machine, (one for some in _concerned(machine, parameters, complete=True) for one in some))


def used(machine: Machine, optimizer: Value) -> Before:
    """A step uses what is there. If only some passes step, or nobody knows which backward pass reaches them, new gradients still join
    old ones sooner or later, unless something clears them in between.
    """
    before: Before = {}
    certain = machine.are_alternatives(options(optimizer))
    for one in options(optimizer):
        if one in machine.optimizers and isinstance(one, Object):
            now: Contents = one.fields[GRADIENTS]
            joins = Condition.STALE in now.untouched
            before[one] = found = frozenset({Condition.STALE}) if joins else now.conditions
            after = frozenset(each if each is Condition.EMPTY else Condition.USED for each in found)
            stepped = replace(now, conditions=after, untouched=after, cleared=frozenset())
            _write(machine, one, stepped if certain or one is optimizer else stepped.either(now))
    return before


def lost(machine: Machine, *optimizers: Object) -> Before:
    """Code out of sight may do anything with them."""
    before = _conditions(one for one in optimizers if one in machine.optimizers)
    for one in before:
        _touch(machine, one, ANYTHING)
        _decide(machine, one, scaled=None)
    return before


def _conditions(optimizers: Iterable[Object]) -> Before:
    return {one: one.fields[GRADIENTS].conditions for one in optimizers}


def _touch(machine: Machine, optimizer: Object, conditions: Conditions, cleared: Iterable[int] = ()) -> None:
    by = machine.frames[-1].function if machine.frames else None
    _write(machine, optimizer, optimizer.fields[GRADIENTS].touched(conditions, by, cleared))


def _write(machine: Machine, optimizer: Object, contents: Contents) -> None:
    if contents != optimizer.fields[GRADIENTS]:
        machine.state.write(optimizer.fields, GRADIENTS, contents)


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
    is_only = len(perhaps) == 1 or machine.are_alternatives(perhaps)
    return (perhaps, []) if not certain and is_only else (certain, perhaps)
