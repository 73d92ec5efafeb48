"""TA912: an index into a loss or a sum, a single number without dimensions, raises from torch 0.5 on."""

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.shapes import ELEMENTWISE
from ta_lint.facts.values.value import Origin
from ta_lint.facts.values.vocabulary import TENSOR_METHODS
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted, spreads, whole_index

KEYWORDS = (("data", "item", "*loss*"),)

# Operations on a number that keep its value.
_SAME = frozenset("clone contiguous cpu cuda detach double float half numpy".split())

# Reductions to a number unless an argument says otherwise, for any array, tensor or series.
_REDUCTIONS = frozenset("max mean median min norm prod std sum var".split())

_SUMS = (cst.BinaryOperation, cst.AugAssign, cst.UnaryOperation)

# Methods that keep a number a number, and those of tensors that may change its shape.
_KEEPS = ELEMENTWISE | {"div", "mul", "neg", "pow"}
_OF_TENSORS = TENSOR_METHODS | _REDUCTIONS | {"new", "new_tensor", "new_zeros"}


def check(module: FileFacts) -> Iterator[Suspicion]:
    numbers = _Numbers(module)
    for part in module.tree.all(cst.Subscript):
        if whole_index(part) is None or not _is_in_sight(part, module) or module.fallbacks.around(part):
            continue
        number = _whole(part.value)
        if not numbers.has(number, is_of_tensor=_asks_for_data(part.value, number, module)):
            continue
        code = module.verbatim(number)
        above = module.tree.parent[part]
        taken = isinstance(above, cst.Attribute) and above.attr.value == "item"
        fix = ProposedFix("take the number", (replace(part, code if taken else f"{code}.item()"),))
        message = f"`{module.code(part)}` indexes a number, which raises since torch 0.5: use `{code}.item()`"
        yield Suspicion(part, message, fix=fix)


def _is_in_sight(part: cst.Subscript, module: FileFacts) -> bool:
    """Whether an index is before `.item()`, after `.data`, or on something named like a loss."""
    above = module.tree.parent[part]
    if isinstance(above, cst.Attribute) and above.attr.value == "item":
        return True
    if "loss" in (dotted(part.value) or "").rpartition(".")[2].lower():
        return True
    return _asks_for_data(part.value, _whole(part.value), module)


def _asks_for_data(whole: Node, number: Node, module: FileFacts) -> bool:
    """Whether an expression takes `.data` of a number, as only code for tensors does."""
    named = [name for name in module.tree.within(whole, cst.Name) if name.value == "data"]
    return any(not module.tree.contains(number, name) for name in named)


def _whole(node: Node) -> Node:
    """`loss` in `loss.data.cpu().numpy()`."""
    while True:
        called = node.func if isinstance(node, cst.Call) and not node.args else None
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            node = node.value
        elif isinstance(called, cst.Attribute) and called.attr.value in _SAME:
            node = called.value
        else:
            return node


class _Numbers:
    """Which values of a file are single numbers without a dimension."""

    def __init__(self, module: FileFacts) -> None:
        self._module = module
        self._open: set[Node] = set()

    def has(self, node: Node, is_of_tensor: bool) -> bool:
        """Whether a value certainly is one. For a tensor, shown by `.data`, it is enough that `backward()` is called on it."""
        return self._module.shapes.shape(node) == () or (is_of_tensor and self._is_number(node))

    def _is_number(self, node: Node) -> bool:
        """Whether a value is one on each path that leads to it, except around a loop."""
        origins = [one for one in self._module.flow.of(node).tensors if one.node not in self._open]
        return bool(origins) and all(map(self._is_made_so, origins))

    def _is_made_so(self, origin: Origin) -> bool:
        node = origin.node
        if origin.path:
            return False
        if isinstance(node, cst.Call):
            whole = self._module.shapes.shape(node) == () or _is_reduced(node) or self._is_loss(node)
            return whole or self._keeps_number(node)
        if not isinstance(node, _SUMS):
            return isinstance(node, (cst.Integer, cst.Float))
        self._open.add(node)
        try:
            return all(map(self._is_number, _terms(node)))
        finally:
            self._open.discard(node)

    def _keeps_number(self, call: cst.Call) -> bool:
        func = call.func
        return isinstance(func, cst.Attribute) and func.attr.value in _KEEPS and self._is_number(func.value)

    def _is_loss(self, call: cst.Call) -> bool:
        """Whether a backward pass starts from what an unknown function returns here, or elsewhere in the file."""
        if not self._may_be_loss(call):
            return False
        return call in self._losses or dotted(call.func) in self._criteria

    def _may_be_loss(self, call: cst.Call) -> bool:
        """Whether only the function decides what a call returns: not a torch function, and not a tensor method."""
        is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_TENSORS
        return self._module.qualified(call.func) is None and not is_method

    @cached_property
    def _criteria(self) -> frozenset[str]:
        """How the file calls the functions that make its losses: `self.criterion`."""
        named = (dotted(node.func) for node in self._losses if isinstance(node, cst.Call))
        return frozenset(name for name in named if name is not None)

    @cached_property
    def _losses(self) -> frozenset[Node]:
        """What the losses of the file are sums of."""
        pending: list[Node] = [start for _, start in self._module.graphs.starts]
        found: set[Node] = set()
        while pending:
            for origin in self._module.flow.of(pending.pop()).origins:
                if origin.node not in found:
                    found.add(origin.node)
                    if isinstance(origin.node, _SUMS):
                        pending += _terms(origin.node)
        return frozenset(found)


def _terms(node: Node) -> list[Node]:
    """What is added up, without the factors that scale it, as a setting does: `a` and `b` in `a + weight * b`."""
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    if isinstance(node, cst.AugAssign):
        scales = isinstance(node.operator, (cst.MultiplyAssign, cst.DivideAssign))
        return [node.target] if scales else [node.target, node.value]
    if not isinstance(node, cst.BinaryOperation):
        return []
    if isinstance(node.operator, cst.Divide):
        return [node.left]
    if isinstance(node.operator, cst.Multiply):
        sides: list[Node] = [node.left, node.right]
        made: list[Node] = [side for side in sides if isinstance(side, cst.Call)]
        return made or [side for side in sides if not _is_setting(side)]
    return [node.left, node.right]


def _is_setting(node: Node) -> bool:
    return isinstance(node, (cst.Integer, cst.Float, cst.Attribute, cst.Subscript))


def _is_reduced(node: Node) -> bool:
    """Whether a value is the sum, mean or norm of all that something holds."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or spreads(node):
        return False
    of_torch = dotted(node.func.value) == "torch"
    return node.func.attr.value in _REDUCTIONS and len(node.args) == of_torch
