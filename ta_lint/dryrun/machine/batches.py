"""Numbers of batches: of which batch one is, and how it grows with that."""

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ta_lint.dryrun.machine.counts import COUNT, Length
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import (
    Hidden,
    Known,
    Object,
    Place,
    Sequence,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from ta_lint.dryrun.machine.frame import Frame
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
        return replace(later, added=added_at(self, other), spans=spans, kept=kept)

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


def added_at(*amounts: Amount) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for one in amounts for place in one.added))


def amount(value: Value | None) -> Amount | None:
    """What a number or a tensor is made of; of a mean of batches nobody asks, and of a mixed one nobody knows enough."""
    found = of_any(value)
    return None if found is None or found.divided is not None or found.mixed else found


def of_any(value: Value | None) -> Amount | None:
    """The same, also of a mixed number and of a mean of batches."""
    return getattr(value, "amount", None)


STEP: Final = Hidden("how far it goes in each pass")
END: Final = Hidden("where it ends")
"""The keys of a range for these; batches that are cut out of a whole begin so far from each other."""
CUTS: Final = Hidden("a part of something begins at each of its numbers")


def batch_of(machine: "Machine") -> Batch | None:
    """The batch of the innermost loop over batches, None if there is no such loop."""
    for depth in range(len(machine.passes), 0, -1):
        over = machine.passes[depth - 1].over
        if (data := data_of(over)) is not None:
            passes = tuple((one.loop, one.number) for one in machine.passes[:depth])
            return Batch(passes, data, isinstance(over, Sequence))
    return None


def data_of(over: Value | None) -> Value | None:
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


def given_at(machine: "Machine", new: Amount, node: ast.AST) -> Place:
    """Where the program gives a number of a batch to the functions that use it."""

    def passes_on(frame: "Frame") -> bool:
        names = [] if frame.function is None else [one.arg for one in frame.function.node.args.args]
        given = [amount(frame.names.get(name)) for name in names]
        return any(one is not None and one.batch == new.batch for one in given)

    return machine.given_at(node, passes_on)


def dataset_of(loader: Value) -> Value | None:
    """What a loader takes its samples from."""
    if isinstance(loader, Unknown):
        return loader.parts.get("dataset")
    return loader.fields.get("dataset") if isinstance(loader, Object) else None
