"""The terms that a loss is the sum of, through whatever leaves it one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.discounting import summands
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.value import Frame
from ta_lint.syntax.tree import Node, Tree, literal_text

_DEPTH = 8


def returned_losses(tree: Tree, classes: Classes) -> Iterator[Node]:
    """What the `training_step` of a Lightning module returns as its loss."""
    for klass in classes.modules():
        step = classes.methods(klass).get("training_step")
        for returned in tree.own(step, cst.Return) if step is not None else ():
            if isinstance(returned.value, cst.Dict):
                yield from (
                    entry.value
                    for entry in returned.value.elements
                    if isinstance(entry, cst.DictElement) and literal_text(entry.key) == "loss"
                )
            elif returned.value is not None:
                yield returned.value


Ways = tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, eq=False)
class WeightedTerm:
    """An expression that makes a term of a loss, and the number by which it is multiplied.

    `ways` says which of several values each use of a variable has where this is a term.
    """

    made: Node
    weight: float
    ways: Ways

    def stands_beside(self, other: "WeightedTerm") -> bool:
        """Whether both are in the loss at once."""
        mine = dict(self.ways)
        return all(mine.get(use, origin) is origin for use, origin in other.ways)


Number = Callable[[Node], float | None]


def weighted_terms(flow: ValueFlow, number: Number, loss: Node) -> list[WeightedTerm]:
    """The terms of a loss that the source gives a weight: what a setting weighs, or something divides, is left out."""
    return list(_weighted(flow, number, (loss, 1.0), None, (), _DEPTH))


def _weighted(
    flow: ValueFlow,
    number: Number,
    term: tuple[Node, float],
    frame: Frame | None,
    ways: Ways,
    depth: int,
) -> Iterator[WeightedTerm]:
    node, weight = term
    origins = flow.of(node, (), frame).tensors if depth else ()
    for origin in origins:
        way = (*ways, (node, origin.node)) if len(origins) > 1 else ways
        parts = _scaled(_number_in(flow, number, origin.frame), origin.node, weight)
        if parts is None:
            yield WeightedTerm(origin.node, weight, way)
        for inner in parts or ():
            yield from _weighted(flow, number, inner, origin.frame, way, depth - 1)


def _number_in(flow: ValueFlow, number: Number, frame: Frame | None) -> Number:
    """The number that an expression is in one call of its function, where it may be a parameter's default."""

    def found(node: Node) -> float | None:
        values = {number(origin.node) for origin in flow.of(node, (), frame).origins}
        return values.pop() if len(values) == 1 else None

    return found


def _scaled(number: Number, made: Node, weight: float) -> list[tuple[Node, float]] | None:
    """The terms of a sum, each with its weight, as far as that is known; None for what is no sum."""
    match made:
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract()):
            return [(part, weight) for _, part in summands(made)]
        case cst.BinaryOperation(operator=cst.Divide()):
            by = number(made.right)
            return [(made.left, weight / abs(by))] if by else []
        case cst.BinaryOperation(operator=cst.Multiply()):
            for one, other in ((made.left, made.right), (made.right, made.left)):
                by = number(one)
                if by is not None:
                    return [(other, weight * abs(by))]
            return []
        case cst.UnaryOperation(operator=cst.Minus()):
            return [(made.expression, weight)]
        case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign()):
            return [(made.target, weight), (made.value, weight)]
        case cst.AugAssign():
            return []
    return None
