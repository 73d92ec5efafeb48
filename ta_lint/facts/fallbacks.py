"""Code that has another way at hand: an API that is tried, or taken under a condition on a version."""

import re

import libcst as cst

from ta_lint.facts.tree import FUNCTIONS, Node, Tree

_ASKS = re.compile(r"version|\bhasattr\b|_AVAILABLE\b|_available\b|\bTORCH_\w*\d", re.IGNORECASE)


class Fallbacks:
    """Queries about code that knows which releases it runs on."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def around(self, node: Node) -> bool:
        """Whether a node stands in a `try` that catches, or under a test of a version or of what is there."""
        child: Node = node
        for above in self._tree.ancestors(node):
            if isinstance(above, (cst.Try, cst.TryStar)) and above.handlers and child is not above.finalbody:
                return True
            if (
                isinstance(above, (cst.If, cst.IfExp))
                and child is not above.test
                and _ASKS.search(self._tree.root.code_for_node(above.test))
            ):
                return True
            if isinstance(above, FUNCTIONS):
                return False
            child = above
        return False
