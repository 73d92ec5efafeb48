"""What is computed of numbers of batches, and what loops add up of these."""

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ta_lint.dryrun.machine.counts import COMPUTED, Length
from ta_lint.dryrun.machine.factors import Count, Multiple
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import (
    DATA,
    Hidden,
    Known,
    Object,
    Sequence,
    Unknown,
    Value,
    cuts_of,
)

if TYPE_CHECKING:
    from ta_lint.dryrun.machine.frame import Pass
    from ta_lint.dryrun.machine.machine import Machine


from ta_lint.dryrun.machine.batches import (
    Amount,
    Batch,
    added_at,
    amount,
    batch_of,
    data_of,
    dataset_of,
    either,
    given_at,
    of_any,
)
from ta_lint.dryrun.machine.last_batches import ADDED, SHARED, used


def mixed(machine: "Machine", value: Value | None) -> None:
    """A number that nobody knows is computed of the batch that is gone over, and so are the terms that it is the sum of."""
    batch = batch_of(machine)
    if batch is None or not isinstance(value, Unknown) or value.amount is not None:
        return
    value.amount = Amount(batch, mixed=True)
    for term in value.got if value.why == COMPUTED else ():
        mixed(machine, term)


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


def of_product(numbers: Iterable[Value]) -> Amount | None:
    """What a product of sizes is made of: where one of them is the size of a batch, it grows with the batch."""
    found = [own for one in numbers if (own := amount(one)) is not None]
    return found[0] if len(found) == 1 and found[0].counts and found[0].grows == 1 else None


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


def of_steps(machine: "Machine", now: "Pass", step: float) -> Amount | None:
    """A number to which each pass of a loop adds this one."""
    data, factor = data_of(now.over), None if step == 1 else Known(step)
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
    if isinstance(kind, (ast.Add, ast.Sub)):
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
            return replace(known, added=(given_at(machine, known, _added(node)),))
        one = known
    if other is None or one is None or one.is_list or other.is_list or not one.is_like(other):
        return None
    if one.batch == other.batch and one.is_total == other.is_total:
        return replace(one, added=added_at(one, other))
    across = one.batch.across(other.batch)
    if not (across or one.batch.is_beside(other.batch)):
        return None
    places = added_at(one, other) or ()
    used(machine, (left, right), _added(node), ADDED)
    if not other.is_total:
        places = tuple(dict.fromkeys((*places, given_at(machine, other, _added(node)))))
    return replace(other, is_total=True, added=places, spans=one.spans or other.spans or across)


def _of_same(machine: "Machine", value: Value) -> Amount | None:
    """A number that nobody knows, as what is counted for a batch: its size as somebody said it, perhaps."""
    batch = batch_of(machine)
    return Amount(batch, counts=True, factor=value) if batch is not None and _may_be_size(value) else None


def _is_constant(value: Value) -> bool:
    if isinstance(value, Known):
        return isinstance(value.value, (int, float))
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
        return known if isinstance(factor, (Known, Unknown)) else None
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
    if by is not None or not isinstance(divisor, (Known, Unknown)):
        return None
    if isinstance(divisor, Multiple) and Count(one.batch.over) in divisor.factors.powers:
        return replace(one, share=(machine.place(node), divisor))
    return replace(one, grows=0) if one.grows == 1 and is_nominal(one, divisor) else one


def _is_of_all(one: Amount, length: Length) -> bool:
    """Whether a length is the number of batches of one pass, or of all samples."""
    return (
        one.batch.over is length.measured
        or (length.inner is not None and _is_of_all(one, length.inner))
        or dataset_of(one.batch.over) is length.measured
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
    if data_of(now.over) is None:
        return
    for (store, _), (_, _, _, value) in machine.state.changes(now.start).items():
        total: Amount | None = getattr(value, "amount", None)
        mean = None if total is None else total.divided or (total.share if total.is_total else None)
        if total is None or mean is None or store in now.inside or total.batch.passes[-1][0] != now.loop:
            continue
        at, divisor = mean
        machine.emit("average", at.node, total=replace(total, is_total=True), by=divisor, at=at)


def _added(node: ast.AST) -> ast.AST:
    """What a statement or an expression adds."""
    return node.value if isinstance(node, ast.AugAssign) else getattr(node, "right", node)
