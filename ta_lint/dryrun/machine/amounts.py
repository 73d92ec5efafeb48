"""What a number is, batch by batch: a value of a batch, or how much there is of it, and what a loop adds up of these."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.machine.counts import COMPUTED, COUNT, Length
from ta_lint.dryrun.machine.factors import Count, Multiple
from ta_lint.dryrun.sources import Pieces
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import (
    DATA,
    Hidden,
    Known,
    Object,
    Place,
    Sequence,
    Table,
    Unknown,
    Value,
    contents,
    cuts_of,
    options,
)

if TYPE_CHECKING:
    from ta_lint.dryrun.machine.frame import Frame, Pass
    from ta_lint.dryrun.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is gone over: the passes of the loops up to the one over batches, and what that goes over."""

    passes: tuple[tuple[Place, int], ...]
    over: Value
    kept: bool = False
    """Whether it comes again from a list that has kept it."""

    def across(self, other: "Batch") -> Place | None:
        """The outermost loop that is in another pass, if both are batches of the same data in the same loops."""
        mine, theirs = self.passes, other.passes
        if self.over is not other.over or [loop for loop, _ in mine] != [loop for loop, _ in theirs]:
            return None
        return next((one[0] for one, now in zip(mine[:-1], theirs[:-1], strict=True) if one != now), None)

    def is_beside(self, other: "Batch") -> bool:
        """Whether both are batches of one pass over the data."""
        mine, theirs = self.passes, other.passes
        return self.over is other.over and mine[:-1] == theirs[:-1] and mine[-1][0] == theirs[-1][0]


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of one batch, or with `is_total` what a loop adds up of those of all batches so far."""

    batch: Batch
    """The batch, or the last one."""
    grows: int = 0
    """The power of the number of samples that it grows with: 1 of a sum over them, 0 of their mean, -1 of what is divided by their number."""
    counts: bool = False
    """Whether it counts batches or samples."""
    is_total: bool = False
    factor: Value | None = None
    """What it was multiplied by: the size of a batch as somebody said it, perhaps."""
    added: tuple[Place, ...] = ()
    """Where a loop adds it to a total."""
    is_list: bool = False
    """Whether it stands for the numbers of batches side by side, as in a list,"""
    held: Sequence | None = None
    """and which list that is, or was."""
    spans: Place | None = None
    """Of a total: the loop over epochs that goes on with it from pass to pass."""
    divided: "tuple[Place, Value | None] | None" = None
    """Of the mean of a total that grows on: where it was divided, and by what."""
    share: "tuple[Place, Value] | None" = None
    """Of what each batch adds to a mean: where it was divided by how many there are, and that number."""

    mixed: bool = False
    """Whether it is a number of the batch of which nobody knows more, such as a loss with another term that is not known."""
    kept: bool = field(default=False, compare=False)
    """Whether it is one of those that something keeps of each batch: after the loop, it is not that of the last one."""

    def either(self, other: "Amount | None") -> "Amount | None":
        """What is known of a number that is one of two: of the batches of one pass, that of the later one."""
        if other is None or self == other:
            return replace(other, kept=True) if other is not None and self.kept else other
        across = self.batch.across(other.batch)
        if not (across or self.batch.is_beside(other.batch)) or not self.is_like(other):
            return None
        later = max(self, other, key=lambda one: (one.is_total, one.batch.passes[-1][1]))
        kept, spans = self.kept or other.kept, self.spans or other.spans or across
        return replace(later, added=_places(self, other), spans=spans, kept=kept)

    def of_another(self, machine: "Machine") -> "Amount | None":
        """The same of the batch that is gone over now."""
        batch = None if self.is_total else batch_of(machine)
        return None if batch is None else replace(self, batch=batch)

    def is_like(self, other: "Amount") -> bool:
        """Whether both measure the same thing."""
        same_share = (self.share is None) == (other.share is None)
        mine = self.grows, self.counts, self.factor, self.mixed
        return same_share and mine == (other.grows, other.counts, other.factor, other.mixed)


def either(one: Amount | None, other: Amount | None) -> Amount | None:
    """What is known of a number that is one of two."""
    return None if one is None else one.either(other)


def _places(*amounts: Amount) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for one in amounts for place in one.added))


def amount(value: Value | None) -> Amount | None:
    """What a number or a tensor is made of; of a mean of batches nobody asks, and of a mixed one nobody knows enough."""
    found = of_any(value)
    return None if found is None or found.divided is not None or found.mixed else found


def of_any(value: Value | None) -> Amount | None:
    """The same, also of a mixed number and of a mean of batches."""
    return getattr(value, "amount", None)


def mixed(machine: "Machine", value: Value | None) -> None:
    """A number that nobody knows is computed of the batch that is gone over, and so are the terms that it is the sum of."""
    batch = batch_of(machine)
    if batch is None or not isinstance(value, Unknown) or value.amount is not None:
        return
    value.amount = Amount(batch, mixed=True)
    for term in value.got if value.why == COMPUTED else ():
        mixed(machine, term)


STEP: Final = Hidden("how far it goes in each pass")
END: Final = Hidden("where it ends")
"""The keys of a range for these; batches that are cut out of a whole begin so far from each other."""
CUTS: Final = Hidden("a part of something begins at each of its numbers")
NOTHING: Final = "zeros of an array"
"""Why the numbers of an array are not known that a total may start with."""
ITEMS: Final = Hidden("what the items of an array hold")


def as_item(machine: "Machine", new: Value, node: ast.AST) -> Amount | None:
    """What an array holds that gets a number of each batch as an item."""
    own = amount(new)
    if own is None or own.is_total or own.is_list:
        return None
    return replace(own, is_list=True, added=(machine.place(node),))


def of_one_batch(machine: "Machine", values: Value | None) -> Amount | None:
    """What several numbers of the batch that is gone over have in common, such as a loss and an accuracy in one array."""
    found = [amount(one) for one in values.every] if isinstance(values, Sequence) else []
    first = found[0] if len(found) > 1 else None
    if first is None or first.is_total or first.batch != batch_of(machine):
        return None
    return first if all(one is not None and one == first for one in found) else None


def side_by_side(values: Value | None) -> Amount | None:
    """The numbers of batches that a list or an array holds."""
    if not isinstance(values, Sequence):
        return amount(values) or amount(getattr(values, "parts", {}).get(ITEMS))
    found = [amount(one) for one in values.every]
    first = found[0] if found else None
    for one in found[1:]:
        first = either(first, one)
    return None if first is None or first.is_total else replace(first, is_list=True, held=values)


def gone_over(machine: "Machine", values: Value | None, node: ast.AST) -> None:
    """All of a list is used that holds what is computed from a model, batch by batch."""
    rest = values.rest if isinstance(values, Sequence) else None
    if machine.passes and rest is not None and amount(rest) is None and is_of_model(rest):
        machine.emit("gone over", node, values)


def is_of_model(value: Value) -> bool:
    """Whether something is computed from what a model puts out."""
    facts = getattr(value, "facts", None)
    return bool(facts.outputs if facts is not None else cuts_of(value))


def of_function(values: Iterable[Value]) -> Amount | None:
    """What a function of numbers gives, if it gets one of a batch: another one of this batch, such as the root of a mean."""
    given = [one for one in values if not isinstance(one, Known)]
    own = amount(given[0]) if len(given) == 1 else None
    return None if own is None or own.grows or own.counts or own.is_total or own.is_list else own


def batch_of(machine: "Machine") -> Batch | None:
    """The batch of the innermost loop over batches, None if there is no such loop."""
    for depth in range(len(machine.passes), 0, -1):
        over = machine.passes[depth - 1].over
        if (data := _data(over)) is not None:
            passes = tuple((one.loop, one.number) for one in machine.passes[:depth])
            return Batch(passes, data, isinstance(over, Sequence))
    return None


def _data(over: Value | None) -> Value | None:
    """What gives the batches that a loop goes over: a loader, what nobody knows, or the loader of those that a list has kept."""
    if isinstance(over, Sequence) and over.rest is not None:
        parts = over.rest.every if isinstance(over.rest, Sequence) else (over.rest,)
        kept = [facts.batch_of for one in parts if (facts := getattr(one, "facts", None)) is not None]
        return next((one for one in kept if one is not None), None)
    by_hand = isinstance(over, Stream) and CUTS in over.fields
    return over if by_hand or isinstance(over, Unknown) or type(over) is Object else None


def cuts_out(machine: "Machine", lower: Value) -> None:
    """A part begins at the number of the pass of a loop that goes over a range by steps: it is a batch."""
    over = next(
        (
            one.over
            for one in reversed(machine.passes)
            if isinstance(one.over, Object) and STEP in one.over.fields
        ),
        None,
    )
    begins = (
        isinstance(lower, Known)
        if machine.passes and not machine.passes[-1].number
        else getattr(lower, "why", "") == COUNT
    )
    if over is not None and begins:
        over.fields[CUTS] = lower


def of_batch(machine: "Machine", *, grows: int = 0, counts: bool = False) -> Amount | None:
    """A number of the batch that is gone over, and not of one of its samples, as in a loop over these."""
    batch = batch_of(machine)
    inner = [] if batch is None else machine.passes[len(batch.passes) :]
    if batch is None or not all(one.exact or _is_no_size_of_batch(one.bound) for one in inner):
        return None
    return Amount(batch, grows, counts)


def _is_no_size_of_batch(bound: Value | None) -> bool:
    """Whether a loop has as many passes as are written down, or as something other than a batch is long."""
    return isinstance(bound, Known) or (isinstance(bound, Length) and bound.amount is None)


def of_steps(machine: "Machine", now: "Pass", step: float) -> Amount | None:
    """A number to which each pass of a loop adds this one."""
    data, factor = _data(now.over), None if step == 1 else Known(step)
    batch = batch_of(machine) if data is None and isinstance(now.over, Stream) and now.exact else None
    if data is not None:
        batch = Batch((*((one.loop, one.number) for one in machine.passes), (now.loop, now.number)), data)
    return None if batch is None else Amount(batch, counts=True, is_total=True, factor=factor)


def computed(machine: "Machine", kind: ast.AST, left: Value, right: Value, node: ast.AST) -> Amount | None:
    """What `left + right` is made of, and the like. That a total is divided is an event."""
    if isinstance(kind, ast.Div) and (mean := getattr(left, "amount", None)) is not None and mean.divided:
        machine.emit("divided again", node, at=mean.divided[0])
        return None
    found = _computed(machine, kind, left, right, node)
    given = [own for one in (left, right) if (own := of_any(one)) is not None]
    of_all = any(one.is_total or one.counts or one.is_list or one.divided for one in given)
    if found is not None or not given or of_all:
        return found
    if isinstance(kind, ast.Add) and (
        given[0].mixed or of_any(left) is None or isinstance(node, ast.AugAssign)
    ):
        used(machine, (left, right), _added(node), ADDED)  # perhaps to those of the batches before
        return None
    return replace(given[0], mixed=True)


def _computed(machine: "Machine", kind: ast.AST, left: Value, right: Value, node: ast.AST) -> Amount | None:
    one, other = amount(left), amount(right)
    if isinstance(kind, ast.Add | ast.Sub):
        starts = isinstance(kind, ast.Add) and not (isinstance(left, Known) and left.value)
        return _sum(machine, left, right, node, starts=starts)
    if one is None and other is None:
        return None
    if isinstance(kind, ast.Mult):
        return _product(one, other, left, right)
    if not isinstance(kind, ast.Div):
        return None
    if one is None and other is not None:  # `100.0 / size`
        per = not other.is_total and other.grows == 1 and isinstance(left, Known)
        return replace(other, grows=-1, counts=False) if per else None
    return None if one is None else _quotient(machine, one, left, right, node)


def _sum(machine: "Machine", left: Value, right: Value, node: ast.AST, *, starts: bool) -> Amount | None:
    """What a sum or a difference is made of; with `starts`, nothing is on the left but what a total may start with."""
    one, other = amount(left), amount(right)
    if one is None and other is None:
        return _of_same(machine, right) if left == Known(0) else None
    if one is None or other is None:
        known, constant = (one, right) if other is None else (other, left)
        assert known is not None
        if known.factor is constant and known.counts:
            other = _of_same(machine, constant)
        elif not _is_constant(constant):
            return None
        elif known is one or known.is_total or not starts:
            return known
        else:
            used(machine, (left, right), _added(node), ADDED)
            return replace(known, added=(_given_at(machine, known, _added(node)),))
        one = known
    if other is None or one is None or one.is_list or other.is_list or not one.is_like(other):
        return None
    if one.batch == other.batch and one.is_total == other.is_total:
        return replace(one, added=_places(one, other))
    across = one.batch.across(other.batch)
    if not (across or one.batch.is_beside(other.batch)):
        return None
    places = _places(one, other) or ()
    used(machine, (left, right), _added(node), ADDED)
    if not other.is_total:
        places = tuple(dict.fromkeys((*places, _given_at(machine, other, _added(node)))))
    return replace(other, is_total=True, added=places, spans=one.spans or other.spans or across)


def _of_same(machine: "Machine", value: Value) -> Amount | None:
    """A number that nobody knows, as what is counted for a batch: its size as somebody said it, perhaps."""
    batch = batch_of(machine)
    return Amount(batch, counts=True, factor=value) if batch is not None and _may_be_size(value) else None


def _is_constant(value: Value) -> bool:
    if isinstance(value, Known):
        return isinstance(value.value, int | float)
    return bool(getattr(value, "is_constant", False)) or getattr(value, "why", "") is NOTHING


def _may_be_size(factor: Value) -> bool:
    """Whether a number may be the size of a batch that somebody has said."""
    if isinstance(factor, Known):
        return isinstance(factor.value, int) and factor.value > 1
    return isinstance(factor, Unknown) and factor.type in (None, "int", DATA)


def _product(one: Amount | None, other: Amount | None, left: Value, right: Value) -> Amount | None:
    if one is not None and other is not None:
        grows = one.grows + other.grows
        if one.batch != other.batch or one.is_total or other.is_total or abs(grows) > 1:
            return None
        return replace(
            one,
            grows=grows,
            counts=one.counts and other.counts,
            factor=one.factor or other.factor,
        )
    known, factor = (one, right) if one is not None else (other, left)
    assert known is not None
    if known.grows or not _may_be_size(factor):
        return known if isinstance(factor, Known | Unknown) else None
    return replace(known, factor=factor)


def _quotient(machine: "Machine", one: Amount, left: Value, divisor: Value, node: ast.AST) -> Amount | None:
    by = amount(divisor)
    if isinstance(divisor, Length) and _is_of_all(one, divisor):
        used(machine, [left], getattr(node, "left", node), SHARED)
    if one.share is not None:
        return None
    if one.is_total and not one.counts:
        return averaged(machine, one, divisor, node)
    if by is not None and by.batch == one.batch:
        grows = one.grows - by.grows
        return None if grows not in (0, 1) else replace(one, grows=grows, counts=False)
    if by is not None or not isinstance(divisor, Known | Unknown):
        return None
    if isinstance(divisor, Multiple) and Count(one.batch.over) in divisor.factors.powers:
        return replace(one, share=(machine.place(node), divisor))
    return replace(one, grows=0) if one.grows == 1 and is_nominal(one, divisor) else one


def _is_of_all(one: Amount, length: Length) -> bool:
    """Whether a length is the number of batches of one pass, or of all samples."""
    return (
        one.batch.over is length.measured
        or (length.inner is not None and _is_of_all(one, length.inner))
        or getattr(one.batch.over, "fields", getattr(one.batch.over, "parts", {})).get("dataset")
        is length.measured
    )


def is_nominal(one: Amount, size: Value) -> bool:
    """Whether a number is the size that the batches of this loader should have."""
    given = one.batch.over.fields.get("batch_size") if isinstance(one.batch.over, Object) else None
    return given is not None and (given is size or given == size)


def averaged(
    machine: "Machine", total: Amount, divisor: Value | None, node: ast.AST, *, is_sum: bool = False
) -> Amount | None:
    """What becomes of a total that is divided by a number, or, without one, of numbers side by side: their sum, or their mean."""
    if is_sum:
        return replace(total, is_list=False, is_total=True)
    place = machine.place(node)
    machine.emit("average", node, total=total, by=divisor, at=place)
    if total.spans or total.batch.passes[-1][0] in [one.loop for one in machine.passes]:
        return replace(total, is_total=False, is_list=False, divided=(place, divisor))
    return total if isinstance(divisor, Known) else None


def left(machine: "Machine", now: "Pass") -> None:
    """A loop ends: the means that it has computed in each pass, and leaves to what comes after it, are events."""
    if _data(now.over) is None:
        return
    for (store, _), (_, _, _, value) in machine.state.changes(now.start).items():
        total: Amount | None = getattr(value, "amount", None)
        mean = None if total is None else total.divided or (total.share if total.is_total else None)
        if total is None or mean is None or store in now.inside or total.batch.passes[-1][0] != now.loop:
            continue
        at, divisor = mean
        machine.emit("average", at.node, total=replace(total, is_total=True), by=divisor, at=at)


DECIDES: Final = "decides"
SHARED: Final = "is divided by how many there are"
SHOWN: Final = "is shown"
ADDED: Final = "is added"
KEPT: Final = "is kept"
"""What is done with numbers: one is compared with that of another epoch; it is divided by the number of batches or samples; it is printed,
logged or returned; it is added to another, or given to code out of sight, which may add it; or it is put into a list.
"""


def compared(machine: "Machine", left: Value, right: Value, node: ast.AST) -> None:
    """Which of two numbers is larger is asked: if both are of batches, the newer one is compared with the best so far."""
    numbers = [
        max(found, key=lambda one: one[0])
        for value in (left, right)
        if (found := [(_age(own), one) for one in options(value) if (own := of_any(one)) is not None])
    ]
    if len(numbers) == 2:
        used(machine, [max(numbers, key=lambda one: one[0])[1]], node, DECIDES)


def _age(own: Amount) -> tuple[int, ...]:
    return tuple(number for _, number in own.batch.passes)


def used(machine: "Machine", values: Iterable[Value], node: ast.AST, how: str) -> None:
    """That a number of one batch is used after the loop over the batches, where it is that of the last one, is an event.

    It is another event that something keeps that of each batch, and no event if a text beside it says that it is the last one.
    """
    given = list(values)
    for value in _numbers(given):
        own = of_any(value)
        if own is None or own.is_total or own.counts or own.is_list or own.divided:
            continue
        if own.batch.passes[-1][0] in [one.loop for one in machine.passes]:
            if how in (ADDED, KEPT):
                machine.emit("kept of each batch", node, own=own)
            if how == KEPT and isinstance(value, Unknown):
                value.amount = replace(own, kept=True)
        elif not (own.added or own.kept) and not is_meant("last_batch", *_texts(given)):
            machine.emit("last batch", node, value, how=how, own=own, at=_given_at(machine, own, node))


def _numbers(values: list[Value]) -> Iterator[Value]:
    """Numbers, and those in lists, dictionaries and texts."""
    for one in contents(values):
        source = getattr(one, "source", None)
        yield from source.pieces if isinstance(source, Pieces) else ()
        yield one


def _texts(values: list[Value]) -> Iterator[str]:
    """What is written beside numbers: texts, and keys of dictionaries."""
    found = (one.value for one in _numbers(values) if isinstance(one, Known))
    keys = (key for one in values if isinstance(one, Table) for key, _ in one.entries())
    return (one for one in (*found, *keys) if isinstance(one, str))


def _given_at(machine: "Machine", new: Amount, node: ast.AST) -> Place:
    """Where the program gives a number of a batch to the functions that use it."""

    def passes_on(frame: "Frame") -> bool:
        names = [] if frame.function is None else [one.arg for one in frame.function.node.args.args]
        given = [amount(frame.names.get(name)) for name in names]
        return any(one is not None and one.batch == new.batch for one in given)

    return machine.given_at(node, passes_on)


def _added(node: ast.AST) -> ast.AST:
    """What a statement or an expression adds."""
    return node.value if isinstance(node, ast.AugAssign) else getattr(node, "right", node)
