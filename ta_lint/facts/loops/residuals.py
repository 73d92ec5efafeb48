"""Squared differences that a training minimises, and the terms that they are made of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import CASTS, summands
from ta_lint.syntax.tree import Node, argument, evaluated

if TYPE_CHECKING:
    from ta_lint.facts.values.flow import ValueFlow
    from ta_lint.facts.values.names import Names
    from ta_lint.facts.values.value import Frame
    from ta_lint.syntax.tree import Tree

_DEPTH = 8
SQUARED_LOSSES = (
    ("torch.nn.MSELoss", "torch.nn.functional.mse_loss"),
    ("torch.nn.SmoothL1Loss", "torch.nn.functional.smooth_l1_loss"),
    ("torch.nn.HuberLoss", "torch.nn.functional.huber_loss"),
)
_KEEPS = CASTS - {"detach", "item", "numpy", "from_numpy", "asarray", "array"}


@dataclass(frozen=True, eq=False)
class Term:
    """One of the summands of a difference, with its sign, and the sum that it stands in: itself, if it stands alone."""

    node: Node
    sign: int
    total: Node


@dataclass(frozen=True, eq=False)
class Residual:
    """A difference that is squared: `loss` is the call or power, `sides` are the expressions that make it up."""

    loss: Node
    sides: tuple[Node, ...]
    terms: tuple[Term, ...]


class Residuals:
    """The squared differences of a file, in which `loss_calls` are the calls of `SQUARED_LOSSES`."""

    def __init__(
        self,
        tree: "Tree",
        names: "Names",
        flow: "ValueFlow",
        loss_calls: Iterable[cst.Call],
    ) -> None:
        self._tree = tree
        self._names = names
        self._flow = flow
        self._loss_calls = tuple(loss_calls)

    @cached_property
    def all(self) -> list[Residual]:
        found = [*self._of_losses(), *self._of_squares()]
        return [one for one in found if len(one.terms) > 1]

    def _of_losses(self) -> Iterator[Residual]:
        for call in self._loss_calls:
            given, target = argument(call, "input", 0), argument(call, "target", 1)
            if given is not None and target is not None:
                terms = (*self._terms(target, 1, None, _DEPTH), *self._terms(given, -1, None, _DEPTH))
                yield Residual(call, (target, given), terms)

    def _of_squares(self) -> Iterator[Residual]:
        for power in self._tree.all(cst.BinaryOperation):
            if isinstance(power.operator, cst.Power) and _is_two(power.right):
                yield self._of_square(power, power.left)
        for call in self._tree.all(cst.Call):
            squared = self._squared(call)
            if squared is not None:
                yield self._of_square(call, squared)

    def _of_square(self, square: Node, of: Node) -> Residual:
        return Residual(square, (of,), tuple(self._terms(of, 1, None, _DEPTH)))

    def _squared(self, call: cst.Call) -> Node | None:
        """`x` of `x.pow(2)`, `x.square()`, `torch.pow(x, 2)` and `torch.square(x)`."""
        name = called_name(call)
        if name not in ("pow", "square"):
            return None
        given = [arg.value for arg in call.args]
        if isinstance(call.func, cst.Attribute) and self._names.qualified(call.func) is None:
            given = [call.func.value, *given]
        if name == "square":
            return given[0] if len(given) == 1 else None
        return given[0] if len(given) == 2 and _is_two(given[1]) else None

    def _terms(self, node: Node, sign: int, frame: "Frame | None", depth: int) -> Iterator[Term]:
        for origin in self._flow.of(node, (), frame).origins:
            made = origin.node
            if depth and isinstance(made, (cst.BinaryOperation, cst.UnaryOperation)):
                parts = list(summands(made, sign))
                if parts != [(sign, made)]:
                    for own, part in parts:
                        for term in self._terms(part, own, origin.frame, depth - 1):
                            yield Term(term.node, term.sign, made) if term.total is term.node else term
                    continue
            inner = self._kept(made)
            if depth and inner is not None and not origin.path:
                yield from self._terms(inner, sign, origin.frame, depth - 1)
            else:
                yield Term(made, sign, made)

    def _kept(self, node: Node) -> Node | None:
        """`x` of a method of a tensor that changes its shape alone."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        is_method = node.func.attr.value in _KEEPS and self._names.qualified(node.func) is None
        return node.func.value if is_method else None


def _is_two(node: Node) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and evaluated(node) == 2
