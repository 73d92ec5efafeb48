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

    The way to `use` is gone back statement by statement, up to what is certainly written. What stands at the end of a pass of
    a loop may stand after the loop, and come round to its head; with a `break` or `continue`, all that the loop writes may.
    """
    found: list[Node] = []
    child = tree.statement(use)
    if isinstance(child, cst.While):  # its test runs after each pass
        found += _round(tree, child, writes)
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
        return (target, False) if target else (_round(tree, above, writes), True)
    if isinstance(above, LOOPS) and child is above.orelse:
        return _passed(tree, above, writes), True
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
    if isinstance(statement, LOOPS):
        return _looped(tree, statement, inside)
    if isinstance(statement, cst.Match):
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


def _round(tree: Tree, loop: cst.For | cst.While, writes: Sequence[Node]) -> list[Node]:
    """What stands where a pass of a loop ends and another may begin."""
    inside = _inside(tree, loop.body, writes)
    return inside if _ends_early(tree, loop, cst.Continue) else _block(tree, loop.body, inside)[0]


def _passed(tree: Tree, loop: cst.For | cst.While, writes: Sequence[Node]) -> list[Node]:
    """What stands when a loop is through: what its head writes, and what the last pass leaves."""
    outside = [part for part in (loop.body, loop.orelse) if part is not None]
    head = [
        write
        for write in _inside(tree, loop, writes)
        if not any(tree.contains(part, write) for part in outside)
    ]
    return [*head, *_round(tree, loop, writes)]


def _looped(tree: Tree, loop: cst.For | cst.While, writes: Sequence[Node]) -> _Standing:
    """What stands after a loop; its `else` runs unless a `break` ends it."""
    if _ends_early(tree, loop, cst.Break):
        return list(writes), True
    found, passes = _after(tree, loop.orelse, writes) if loop.orelse is not None else ([], True)
    return ([*found, *_passed(tree, loop, writes)], True) if passes else (found, False)


def _ends_early(tree: Tree, loop: cst.For | cst.While, kind: type[cst.Break] | type[cst.Continue]) -> bool:
    return any(tree.loops(leave)[:1] == [loop] for leave in tree.within(loop.body, kind))


def _tried(tree: Tree, statement: cst.Try, writes: Sequence[Node]) -> _Standing:
    """All that a `try` writes may stand after it; a way around is that of a handler, or of the body."""
    if statement.finalbody is not None:
        standing, passes = _block(tree, statement.finalbody.body, writes)
        if not passes:
            return standing, False
    ways = [statement.body, *(handler.body for handler in statement.handlers)]
    return list(writes), any(_block(tree, way, writes)[1] for way in ways)
