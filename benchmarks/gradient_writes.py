"""What a program itself writes to `.grad`."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts.loops.loops import targets_of
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, Tree, dotted

_GRADS = frozenset({"grad", "_grad", "main_grad"})
_OVERWRITES = frozenset({"copy_", "detach_", "fill_", "set_", "zero_"})


class GradientWrites:
    """The code of a file that replaces or overwrites gradients."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def within(self, region: Node) -> Iterator[Node]:
        """The statements and calls at or below `region` that replace or overwrite a `.grad`."""
        for statement in self._tree.within(region, cst.Assign, cst.AnnAssign, cst.Del):
            targets = [target for target in targets_of(statement) if self._has_grad(target)]
            if any(not self._rescales(target, statement) for target in targets):
                yield statement
        yield from (call for call in self._tree.within(region, cst.Call) if self._overwrites(call))

    def _overwrites(self, call: cst.Call) -> bool:
        """`p.grad.zero_()` and the like, and `setattr(p, "grad", None)`, `getattr(optimizer, "zero_grad")()`."""
        if called_name(call) in ("setattr", "getattr"):
            return any("grad" in string.value for string in self._tree.within(call, cst.SimpleString))
        return (
            called_name(call) in _OVERWRITES
            and isinstance(call.func, cst.Attribute)
            and self._has_grad(call.func.value)
        )

    def _has_grad(self, node: Node) -> bool:
        """Whether an expression goes through `.grad`: `p.grad`, `p.grad.data`, `p.grad[mask]`."""
        return any(found.attr.value in _GRADS for found in self._tree.within(node, cst.Attribute))

    def _rescales(self, target: Node, statement: cst.Assign | cst.AnnAssign | cst.Del) -> bool:
        """Whether a statement computes a `.grad` from its old value: `p.grad = p.grad / count`."""
        value = None if isinstance(statement, cst.Del) else statement.value
        parts = self._tree.within(value, cst.Attribute) if value is not None else []
        return dotted(target) in {dotted(part) for part in parts}
