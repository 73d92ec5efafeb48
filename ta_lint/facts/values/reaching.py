"""Which of several writes of a variable may reach a use of it: branches join, and a loop brings round what it writes later."""

from collections.abc import Sequence

import libcst as cst

from ta_lint.syntax.tree import BLOCKS, LOOPS, Node, Tree

_Standing = tuple[list[Node], bool]
"""The writes that may stand at a point, and whether a way leads there that passes none of them."""

_LEAVES = (cst.Return, cst.Raise, cst.Break, cst.Continue)
_HOMES = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Module)


def reaching(tree: Tree, writes: Sequence[Node], use: Node) -> _Standing:
    """The writes, all of them in the function of `use`, that may reach it.

    The way to `use` is gone back statement by statement, up to what is certainly written. A loop is not unrolled: all that it
    writes may stand after it, and all that it writes may come round to its head.
    """
    found: list[Node] = []
    child = tree.statement(use)
    if isinstance(child, cst.While):  # its test runs after each pass
        found += _inside(tree, child.body, writes)
    for above in list(tree.ancestors(child)):
        if isinstance(above, _HOMES) and not isinstance(above, cst.Module):
            break
        standing, passes = _before(tree, above, child, writes)
        found += standing
        if not passes:
            return _once(found), False
        child = above
    return _once(found), True


def _once(found: list[Node]) -> list[Node]:
    return list({id(write): write for write in found}.values())


def _inside(tree: Tree, node: Node | None, writes: Sequence[Node]) -> list[Node]:
    return [write for write in writes if node is not None and tree.contains(node, write)]


def _before(tree: Tree, above: Node, child: Node, writes: Sequence[Node]) -> _Standing:
    """What stands at the start of `child`, of what runs in `above` before it."""
    if isinstance(above, (cst.SimpleStatementLine, *BLOCKS)):
        return _sequence(tree, above.body[: list(above.body).index(child)], writes)
    if isinstance(above, LOOPS) and child is above.body:
        target: list[Node] = [write for write in writes if write is above]
        return (target, False) if target else (_inside(tree, above.body, writes), True)
    if isinstance(above, cst.If):
        tested = _inside(tree, above.test, writes)
        return tested, not tested
    if isinstance(above, cst.With):
        entered = [write for item in above.items for write in _inside(tree, item, writes)]
        return entered, not entered
    if isinstance(above, cst.Try):
        return _inside(tree, above, writes) if child is not above.body else [], True
    if isinstance(above, (cst.ExceptHandler, cst.MatchCase)):
        bound = [write for write in _inside(tree, above, writes) if not tree.contains(above.body, write)]
        return bound, not bound
    return [], True


def _sequence(tree: Tree, statements: Sequence[Node], writes: Sequence[Node]) -> _Standing:
    found: list[Node] = []
    for statement in reversed(statements):
        standing, passes = _after(tree, statement, writes)
        found += standing
        if not passes:
            return found, False
    return found, True


def _after(tree: Tree, statement: Node, writes: Sequence[Node]) -> _Standing:
    """What stands after a statement, of what it writes."""
    inside = _inside(tree, statement, writes)
    if not inside:
        return [], not isinstance(statement, _LEAVES)
    if isinstance(statement, (cst.SimpleStatementLine, *BLOCKS)):
        return _sequence(tree, statement.body, inside)
    if isinstance(statement, cst.If):
        return _chosen(tree, statement, inside)
    if isinstance(statement, cst.Else):
        return _block(tree, statement.body, inside)
    if isinstance(statement, cst.With):
        found, passes = _block(tree, statement.body, inside)
        entered = [write for item in statement.items for write in _inside(tree, item, inside)]
        return ([*found, *entered], False) if passes and entered else (found, passes)
    if isinstance(statement, cst.Try):
        return _tried(tree, statement, inside)
    if isinstance(statement, (*LOOPS, cst.Match)):
        return inside, True
    surely = statement in inside or not any(isinstance(write, cst.NamedExpr) for write in inside)
    return inside[-1:] if surely else inside, not surely


def _block(tree: Tree, block: Node, writes: Sequence[Node]) -> _Standing:
    """What stands after a block; nothing does, on no way, if it ends by leaving."""
    last = block.body[-1] if isinstance(block, BLOCKS) and block.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else last
    return ([], False) if isinstance(small, _LEAVES) else _after(tree, block, writes)


def _chosen(tree: Tree, statement: cst.If, writes: Sequence[Node]) -> _Standing:
    found, passes = _block(tree, statement.body, writes)
    found, other = list(found), statement.orelse
    if other is None:
        passes = True
    else:
        standing, around = (
            _chosen(tree, other, writes) if isinstance(other, cst.If) else _block(tree, other.body, writes)
        )
        found += standing
        passes = passes or around
    tested = _inside(tree, statement.test, writes) if passes else []
    return [*found, *tested], passes and not tested


def _tried(tree: Tree, statement: cst.Try, writes: Sequence[Node]) -> _Standing:
    """All that a `try` writes may stand after it; a way around is that of a handler, or of the body."""
    if statement.finalbody is not None:
        standing, passes = _block(tree, statement.finalbody.body, writes)
        if not passes:
            return standing, False
    ways = [statement.body, *(handler.body for handler in statement.handlers)]
    return list(writes), any(_block(tree, way, writes)[1] for way in ways)
