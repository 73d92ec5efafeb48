"""Totals that a loop adds up, and what divides them."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, Tree, dotted


def divisions(tree: Tree) -> Iterator[tuple[Node, Node, Node]]:
    """The divisions in a file: each with what is divided, and by what."""
    for operation in tree.all(cst.BinaryOperation):
        if isinstance(operation.operator, cst.Divide):
            yield operation, operation.left, operation.right
    for statement in tree.all(cst.AugAssign):
        if isinstance(statement.operator, cst.DivideAssign):
            yield statement, statement.target, statement.value


def added_to(total: Node, tree: Tree) -> list[Node]:
    """All values that are added to a total, or to the list of which it is the sum, in its function."""
    is_sum = isinstance(total, cst.Call) and called_name(total) == "sum" and len(total.args) == 1
    name = dotted(total.args[0].value if isinstance(total, cst.Call) and is_sum else total)
    if name is None:
        return []
    own = tree.own(tree.home(total), cst.Call, cst.AugAssign, cst.Assign)
    return [value for node in own if (value := _appended(node, name) if is_sum else _summand(node, name))]


def _appended(node: Node, name: str) -> Node | None:
    """`value` of `name.append(value)`."""
    if not isinstance(node, cst.Call) or dotted(node.func) != f"{name}.append" or len(node.args) != 1:
        return None
    return node.args[0].value


def _summand(node: Node, name: str) -> Node | None:
    """`value` of `name += value` and `name = name + value`."""
    if isinstance(node, cst.AugAssign):
        is_sum = isinstance(node.operator, cst.AddAssign) and dotted(node.target) == name
        return node.value if is_sum else None
    if not isinstance(node, cst.Assign) or dotted(node.targets[0].target) != name:
        return None
    value = node.value
    is_sum = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add)
    return (
        value.right
        if isinstance(value, cst.BinaryOperation) and is_sum and dotted(value.left) == name
        else None
    )
