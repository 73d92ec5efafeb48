"""Where nodes stand in the file.

libcst computes positions by printing a tree, which for a whole file takes three times as long as parsing it. Python's
own parser has already said on which line each top-level statement begins, so only those that hold a wanted node are
printed, and their lines are shifted.
"""

import ast
from collections.abc import Iterable, Mapping

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, PositionProvider

from ta_lint.facts.tree import Node, Tree

_Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def positions(tree: Tree, nodes: Iterable[Node], syntax: ast.Module | None) -> dict[Node, CodeRange]:
    """The place of each node: lines from 1, columns from 0 in code points, the end exclusive.

    `syntax` is the same file as `ast` parsed it, or None where it cannot; the whole file is printed then.
    """
    starts = _starts(tree.root, syntax) if syntax is not None else None
    if starts is None:
        everything = _printed(tree.root)
        return {node: everything[node] for node in nodes}
    found: dict[Node, CodeRange] = {}
    printed: dict[Node, Mapping[Node, CodeRange]] = {}
    for node in nodes:
        statement = _top_level(tree, node)
        if statement not in printed:
            printed[statement] = _printed(tree.root.with_changes(body=[statement], header=[]))
        place = printed[statement][node]
        shift = starts[statement] - printed[statement][_first(statement)].start.line
        found[node] = CodeRange(_moved(place.start, shift), _moved(place.end, shift))
    return found


def _starts(root: cst.Module, syntax: ast.Module) -> dict[Node, int] | None:
    """The first line of each top-level statement, decorators included; None if the two parsers disagree."""
    lines = iter(syntax.body)
    found: dict[Node, int] = {}
    for statement in root.body:
        small = len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
        same = [line for _, line in zip(range(small), lines, strict=False)]
        if len(same) < small:
            return None
        decorators = getattr(same[0], "decorator_list", [])
        found[statement] = min(item.lineno for item in (same[0], *decorators))
    return found if next(lines, None) is None else None


def _first(statement: _Statement) -> Node:
    """What stands on a statement's first line: to libcst a decorated class begins at its `class`."""
    decorators = statement.decorators if isinstance(statement, (cst.ClassDef, cst.FunctionDef)) else ()
    return decorators[0] if decorators else statement


def _top_level(tree: Tree, node: Node) -> _Statement:
    child = node
    for above in tree.ancestors(node):
        if above is tree.root:
            break
        child = above
    assert isinstance(child, _Statement)
    return child


def _printed(module: cst.Module) -> Mapping[Node, CodeRange]:
    return cst.MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


def _moved(position: CodePosition, lines: int) -> CodePosition:
    return CodePosition(position.line + lines, position.column)
