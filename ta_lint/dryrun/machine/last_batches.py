"""Numbers that only the last batch has: what is done with them after the loop over the batches."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.sources import Pieces
from ta_lint.dryrun.values import (
    Known,
    Table,
    Unknown,
    Value,
    each_in,
    options,
)

if TYPE_CHECKING:
    from ta_lint.dryrun.machine.machine import Machine


from ta_lint.dryrun.machine.batches import Amount, given_at, of_any

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
            machine.emit("last batch", node, value, how=how, own=own, at=given_at(machine, own, node))


def _numbers(values: list[Value]) -> Iterator[Value]:
    """Numbers, and those in lists, dictionaries and texts."""
    for one in each_in(values):
        source = getattr(one, "source", None)
        yield from source.pieces if isinstance(source, Pieces) else ()
        yield one


def _texts(values: list[Value]) -> Iterator[str]:
    """What is written beside numbers: texts, and keys of dictionaries."""
    found = (one.value for one in _numbers(values) if isinstance(one, Known))
    keys = (key for one in values if isinstance(one, Table) for key, _ in one.entries())
    return (one for one in (*found, *keys) if isinstance(one, str))
