"""States of an environment: which values of a function are computed from the current one, and which from the next."""

from collections.abc import Iterator
from enum import StrEnum

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, literal_text

_MOST = 60  # expressions behind one value

_STATE = r"(states?|ob|obs|observations?)"
_NEXT = regex(
    rf"(\w+_)?(next|new|nxt)_?(s|st|{_STATE})(_\w+)?|(\w+_)?(s|{_STATE})_?(next|new|nxt|prime|tp1|t1|p|2|_)(_\w+)?|(\w+_)?{_STATE}_"
)
_CURRENT = regex(
    rf"((batch|b|mb|minibatch|cur|curr|current|sampled?|train|exp|tensor)_)?{_STATE}(_(no|t|tensors?|b|batch|batches))?|s|s_t|st"
)


class State(StrEnum):
    """Which state of two, before an action and after it."""

    CURRENT = "current"
    NEXT = "next"


class States:
    """Queries about the states that values of one function come from, told apart by their names."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names

    def of(self, node: Node) -> frozenset[State]:
        """The states that a value is computed from."""
        return frozenset(state for part in self.behind(node) for state in self.mentioned(part))

    def mentioned(self, node: Node) -> frozenset[State]:
        """The states that an expression mentions itself."""
        found = (self._named(one) for one in self._tree.within(node, cst.Name, cst.Subscript))
        return frozenset(state for state in found if state is not None)

    def behind(self, node: Node) -> list[Node]:
        """An expression, and those of its function that its names stand for on any way; what a state is made of is left out."""
        home = self._tree.home(node)
        found = {id(node): node}
        pending = [node]
        while pending and len(found) < _MOST:
            for name in self._tree.within(pending.pop(), cst.Name):
                if self._named(name) is not None:
                    continue
                for value in self._values(name, home):
                    if id(value) not in found:
                        found[id(value)] = value
                        pending.append(value)
        return list(found.values())

    def _values(self, name: cst.Name, home: Node) -> Iterator[Node]:
        """What a function binds a name to, or unpacks into it and others."""
        for binding in self._names.reaching(name):
            value = binding.value
            if value is None and isinstance(binding.node, cst.Assign):
                value = binding.node.value
            if (
                value is not None
                and binding.how in ("assign", "unpack")
                and self._tree.home(binding.node) is home
            ):
                yield value

    def _named(self, node: cst.Name | cst.Subscript) -> State | None:
        """The state that a name, an attribute or a key is called after."""
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None
            name = literal_text(index.value) if isinstance(index, cst.Index) else None
        else:
            above = self._tree.parent.get(node)
            is_keyword = isinstance(above, cst.Arg) and above.keyword is node
            is_called = isinstance(above, cst.Call) and above.func is node
            name = None if is_keyword or is_called else node.value
        if name is None:
            return None
        if _NEXT.fullmatch(name):
            return State.NEXT
        return State.CURRENT if _CURRENT.fullmatch(name) else None
