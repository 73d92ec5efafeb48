"""The loops of the user's source around a line that runs."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from ta_runtime.probes.places import NOWHERE, Place, is_library
from ta_runtime.probes.sources import of_node, syntax

_Loop = ast.For | ast.While
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_DEPTH = 4  # names behind each other
_GROWS = (ast.Gt, ast.GtE, ast.Eq)


@dataclass(frozen=True, slots=True)
class SourceLoop:
    """A loop by its first line, with what its source says of how often it runs."""

    place: Place
    cut: Place | None = None
    """Where it says that it goes over no more than `limit` batches, a literal number."""
    limit: int | None = None
    floored: bool = False
    """Whether it runs a number of times that is a length divided and rounded down."""


def around(place: Place) -> SourceLoop | None:
    """The innermost loop around a line; None where there is none, or no source."""
    found = _enclosing(place.path, place.line)
    if not found:
        return None
    loop = found[-1]
    cut, limit = _cut(loop)
    stops = of_node(place.path, cut) if cut is not None else None
    floored = _is_floor(syntax(place.path), loop)
    return SourceLoop(_header(place.path, loop), stops, limit, floored)


def outermost() -> Place:
    """The outermost loop around what runs now, from the top level of the script on; its line there without a loop."""
    frame: FrameType | None = sys._getframe(1)
    found = NOWHERE
    looping = False
    while frame is not None:
        path, line = frame.f_code.co_filename, frame.f_lineno
        if not is_library(path):
            loops = _enclosing(path, line)
            if loops:
                found, looping = _header(path, loops[0]), True
            elif not looping:
                found = Place(path, line)
            if frame.f_code.co_name == "<module>":
                break
        frame = frame.f_back
    return found


def _enclosing(path: str, line: int) -> list[_Loop]:
    """The loops around a line in the innermost function, the outermost first."""
    innermost: list[_Loop] = []
    nodes: list[tuple[ast.AST, tuple[_Loop, ...]]] = [(syntax(path), ())]
    while nodes:
        node, loops = nodes.pop()
        if isinstance(node, ast.stmt) and not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if isinstance(node, _FUNCTIONS):
            loops = ()
        elif isinstance(node, (ast.For, ast.While)):
            loops = (*loops, node)
        if isinstance(node, ast.stmt):
            innermost = list(loops)
        nodes += [(child, loops) for child in ast.iter_child_nodes(node)]
    return innermost


def _cut(loop: _Loop) -> tuple[ast.expr | None, int | None]:
    """`i > 10` of `if i > 10: break`, or `islice(loader, 10)`, with the number."""
    for branch in loop.body:
        if isinstance(branch, ast.If) and isinstance(branch.body[-1], ast.Break) and not branch.orelse:
            test = branch.test
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], _GROWS) and len(test.ops) == 1:
                limit = _number(test.comparators[0])
                if limit is not None:
                    return test, limit
    for call in ast.walk(loop.iter) if isinstance(loop, ast.For) else ():
        if isinstance(call, ast.Call) and len(call.args) == 2:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            limit = _number(call.args[1])
            if name == "islice" and limit is not None:
                return call, limit
    return None, None


def _is_floor(tree: ast.Module, loop: _Loop) -> bool:
    """`len(loader) // 2 * epochs` of `range(...)` or `while step < ...`, through names; nothing is added to make up for it."""
    bound: ast.expr | None = None
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Compare):
        bound = loop.test.comparators[0]
    elif isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1:
        bound = loop.iter.args[0]
    operations = list(_operations(tree, bound, _DEPTH)) if bound is not None else []
    if any(not isinstance(each, ast.BinOp) or isinstance(each.op, (ast.Add, ast.Sub)) for each in operations):
        return False
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.FloorDiv)
        and isinstance(each.left, ast.Call)
        and getattr(each.left.func, "id", "") == "len"
        for each in operations
    )


def _operations(tree: ast.Module, node: ast.expr, depth: int) -> Iterator[ast.BinOp | ast.UnaryOp]:
    """What a number is computed by, where each of its names is assigned once."""
    if isinstance(node, ast.Name) and depth:
        values = [
            assign.value
            for assign in ast.walk(tree)
            if isinstance(assign, ast.Assign)
            for target in assign.targets
            if isinstance(target, ast.Name) and target.id == node.id
        ]
        if len(values) == 1:
            yield from _operations(tree, values[0], depth - 1)
    elif isinstance(node, ast.BinOp):
        yield node
        yield from _operations(tree, node.left, depth)
        yield from _operations(tree, node.right, depth)
    elif isinstance(node, ast.UnaryOp):
        yield node


def _number(node: ast.expr) -> int | None:
    is_number = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if is_number else None  # type: ignore[attr-defined]


def _header(path: str, loop: _Loop) -> Place:
    return of_node(path, loop.iter if isinstance(loop, ast.For) else loop.test)
