"""What a value is computed from: its own expression, and those that the names and calls in it stand for."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts.values.kinds import Kinds
from ta_lint.syntax.tree import Node, Tree

_MOST = 40  # expressions of one value


class Parts:
    """The expressions behind a value, across local names, attributes of `self` and helper functions."""

    def __init__(self, tree: Tree, kinds: Kinds) -> None:
        self._tree = tree
        self._kinds = kinds

    def of(self, value: Node) -> list[Node]:
        """The expression of a value, and all that it is computed from, as far as that is visible: the expression first."""
        found = {id(value): value}
        pending = [value]
        while pending and len(found) < _MOST:
            for meant in self._behind(pending.pop()):
                if id(meant) not in found:
                    found[id(meant)] = meant
                    pending.append(meant)
        return list(found.values())

    def _behind(self, expression: Node) -> Iterator[Node]:
        """What the names, attributes and calls in an expression stand for."""
        for node in self._tree.within(expression, cst.Name, cst.Attribute, cst.Call):
            if isinstance(node, cst.Call):
                meant = self._kinds.calls.returned(node)
            elif isinstance(node, cst.Name) and self._is_label(node):
                continue
            else:
                meant = self._kinds.origin(node)
            if meant is not None and meant is not node and not isinstance(meant, cst.Param):
                yield meant

    def _is_label(self, name: cst.Name) -> bool:
        """Whether a name is no variable: `b` in `a.b` and in `f(b=1)`."""
        above = self._tree.parent.get(name)
        return (isinstance(above, cst.Attribute) and above.attr is name) or (
            isinstance(above, cst.Arg) and above.keyword is name
        )
