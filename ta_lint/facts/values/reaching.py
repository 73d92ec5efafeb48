"""Which of several writes of a variable may reach a use of it: branches join, and a loop brings round what it writes later.

The writes are sorted, so those inside a statement are an interval of them, and statements without any are never looked at.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import libcst as cst

from ta_lint.syntax.tree import BLOCKS, LOOPS, Node, Tree

MOST = 24
"""Of more writes than these that may reach one use, nobody can tell what the variable is."""

_LEAVES = (cst.Return, cst.Raise, cst.Break, cst.Continue)
_HOMES = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Module)


class Standing(NamedTuple):
    """What stands at a point of a function."""

    writes: frozenset[int]
    """The places, among the writes, of those that may stand there."""
    passes: bool
    """Whether a way leads there that passes none of them."""


class _TooMany(Exception):
    """More than `MOST` writes may reach a use."""


class Reaching:
    """The writes of one variable, all of them in one function of a tree."""

    def __init__(self, tree: Tree, writes: Sequence[Node]) -> None:
        self._tree = tree
        placed = sorted((tree.interval(write)[0], place) for place, write in enumerate(writes))
        self._numbers = [number for number, _ in placed]
        self._writes = [writes[place] for _, place in placed]
        self._before: dict[
            Node, Standing | None
        ] = {}  # what stands where a statement begins; None for too many
        self._found: set[int] = set()

    def at(self, use: Node) -> tuple[list[Node], bool] | None:
        """The writes that may reach a use in their function, and whether none of them may; None if they are too many.

        The way to `use` is gone back statement by statement, up to what is certainly written. What stands at the end of a pass
        of a loop may stand after the loop, and come round to its head; with a `break` or `continue`, all that it writes may.
        """
        statement = self._tree.statement(use)
        standing = self._at_start(statement)
        if standing is None:
            return None
        found = set(standing.writes)
        if isinstance(statement, cst.While):  # its test runs after each pass
            try:
                found |= self._collected(statement)
            except _TooMany:
                return None
        return [self._writes[place] for place in sorted(found)], standing.passes

    def _collected(self, loop: cst.While) -> set[int]:
        self._found = set()
        self._round(loop)
        return self._found

    def _at_start(self, statement: Node) -> Standing | None:
        """What stands where a statement begins. What is before it is asked only if a way leads there, and remembered."""
        ways: list[tuple[Node, set[int]]] = []
        standing: Standing | None = Standing(frozenset(), True)
        child, above = statement, self._tree.parent.get(statement)
        found: set[int] = set()
        while above is not None and (isinstance(above, cst.Module) or not isinstance(above, _HOMES)):
            if child in self._before:
                standing = self._before[child]
                break
            earlier = self._earlier(above, child)
            self._found = set()
            try:
                passes = self._after(earlier) if earlier is not None else self._stands_before(above, child)
            except _TooMany:
                standing = self._before[child] = None
                break
            found |= self._found
            if len(found) > MOST:
                self._before[statement] = None
                return None
            ways.append((child, self._found))
            if not passes:
                standing = Standing(frozenset(), False)
                break
            if earlier is not None:
                child = earlier
            else:
                child, above = above, self._tree.parent.get(above)
        for child, found in reversed(ways):
            if standing is not None:
                writes = standing.writes | found
                standing = Standing(writes, standing.passes) if len(writes) <= MOST else None
            self._before[child] = standing
        return standing

    def _earlier(self, block: Any, child: Node) -> Node | None:
        """The statement of a block that has the last write before another one of it."""
        if not isinstance(block, (cst.SimpleStatementLine, *BLOCKS)):
            return None
        end = bisect_left(self._numbers, self._tree.interval(child)[0])
        if end <= self._inside(block).start:
            return None
        return self._statement(block, self._numbers[end - 1])

    def _statement(self, block: Any, number: int) -> Node:
        """The statement of a block that has the node with a number."""
        statements: Sequence[Node] = block.body
        place = bisect_right(statements, number, key=lambda one: self._tree.interval(one)[0])
        return statements[place - 1]

    def _inside(self, node: Node | None) -> range:
        """The places of the writes at or below a node."""
        if node is None:
            return range(0)
        first, last = self._tree.interval(node)
        return range(bisect_left(self._numbers, first), bisect_right(self._numbers, last))

    def _add(self, places: range | list[int]) -> bool:
        """Add writes that may stand; returns whether there are any."""
        self._found.update(places[: MOST + 1])
        if len(self._found) > MOST:
            raise _TooMany
        return bool(places)

    def _stands_before(self, above: Node, child: Node) -> bool:
        """Add what stands at the start of `child`, of what runs in `above` before it; returns whether a way passes it all."""
        if isinstance(above, LOOPS) and child is above.body:
            first = self._inside(above)
            if first and self._writes[first.start] is above:
                return not self._add(first[:1])
            self._round(above)
            return True
        if isinstance(above, LOOPS) and child is above.orelse:
            self._passed(above)
            return True
        if isinstance(above, cst.If):
            return not self._add(self._inside(above.test))
        if isinstance(above, cst.With):
            entered = [self._add(self._inside(item)) for item in above.items]
            return not any(entered)
        if isinstance(above, cst.Try):
            if child is not above.body:
                self._add(self._inside(above))
            return True
        if isinstance(above, (cst.ExceptHandler, cst.MatchCase)):
            return not self._add(self._head(above))
        return True

    def _head(self, node: Any) -> list[int]:
        """The places of the writes in a statement outside of its blocks."""
        blocks = [block for block in (node.body, getattr(node, "orelse", None)) if block is not None]
        inner = [self._inside(block) for block in blocks]
        return [place for place in self._inside(node) if not any(place in places for places in inner)]

    def _sequence(self, block: Any, places: range) -> bool:
        """Add what stands after those statements of a block that have these writes; returns whether a way passes them all."""
        while places:
            statement = self._statement(block, self._numbers[places[-1]])
            if not self._after(statement):
                return False
            first = bisect_left(self._numbers, self._tree.interval(statement)[0], places.start, places.stop)
            places = range(places.start, first)
        return True

    def _after(self, statement: Node) -> bool:
        """Add what stands after a statement, of what it writes; returns whether a way passes it."""
        inside = self._inside(statement)
        if not inside:
            return not isinstance(statement, _LEAVES)
        if isinstance(statement, (cst.SimpleStatementLine, *BLOCKS)):
            leaves = statement.body and isinstance(statement.body[-1], _LEAVES)
            return not leaves and self._sequence(statement, inside)
        if isinstance(statement, cst.If):
            return self._chosen(statement)
        if isinstance(statement, cst.Else):
            return self._block(statement.body)
        if isinstance(statement, cst.With):
            passes = self._block(statement.body)
            entered = [self._add(self._inside(item)) for item in statement.items if passes]
            return passes and not any(entered)
        if isinstance(statement, cst.Try):
            return self._tried(statement)
        if isinstance(statement, LOOPS):
            return self._looped(statement)
        if isinstance(statement, cst.Match):
            self._add(inside)
            return True
        surely = self._writes[inside[0]] is statement or not any(
            isinstance(self._writes[place], cst.NamedExpr) for place in inside
        )
        self._add(inside[-1:] if surely else inside)
        return not surely

    def _block(self, block: Node) -> bool:
        """Add what stands after a block; nothing does, on no way, if it ends by leaving."""
        last = block.body[-1] if isinstance(block, BLOCKS) and block.body else None
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else last
        return not isinstance(small, _LEAVES) and self._after(block)

    def _chosen(self, statement: cst.If) -> bool:
        passed: list[cst.If] = []
        other: cst.If | cst.Else | None = statement
        while isinstance(other, cst.If):
            passed.append(other)
            other = other.orelse
        passes = other is None or self._block(other.body)
        for branch in reversed(passed):
            passes = self._block(branch.body) or passes
            if passes and self._add(self._inside(branch.test)):
                passes = False
        return passes

    def _round(self, loop: cst.For | cst.While) -> None:
        """Add what stands where a pass of a loop ends and another may begin."""
        if self._tree.is_left(loop, cst.Continue):
            self._add(self._inside(loop.body))
        else:
            self._block(loop.body)

    def _passed(self, loop: cst.For | cst.While) -> None:
        """Add what stands when a loop is through: what its head writes, and what the last pass leaves."""
        self._add(self._head(loop))
        self._round(loop)

    def _looped(self, loop: cst.For | cst.While) -> bool:
        """Add what stands after a loop; its `else` runs unless a `break` ends it."""
        if self._tree.is_left(loop, cst.Break):
            self._add(self._inside(loop))
            return True
        passes = loop.orelse is None or self._after(loop.orelse)
        if passes:
            self._passed(loop)
        return passes

    def _tried(self, statement: cst.Try) -> bool:
        """Add what stands after a `try`, all that it writes; a way around is that of a handler, or of the body."""
        if statement.finalbody is not None and not self._block(statement.finalbody.body):
            return False
        self._add(self._inside(statement))
        ways = [statement.body, *(handler.body for handler in statement.handlers)]
        return any(self._block(way) for way in ways)  # all writes are among them already
