"""Python's order of the classes that another one derives from."""

from collections.abc import Iterable
from typing import TypeVar

C = TypeVar("C")


def linear(bases: tuple[C, ...], orders: list[tuple[C, ...]]) -> Iterable[C]:
    """Python's order of the base classes (C3), of which each has an order of its own; where they have none, as they stand."""
    if len(bases) == 1 or (len(bases) == 2 and bases[1] in orders[0]):
        return orders[0]
    rows = [*map(list, orders), list(bases)]
    order: list[C] = []
    while rows := [row for row in rows if row]:
        heads = (row[0] for row in rows)
        head = next((one for one in heads if not any(one in row[1:] for row in rows)), rows[0][0])
        order.append(head)
        rows = [[one for one in row if one is not head] for row in rows]
    return order
