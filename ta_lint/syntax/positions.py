"""Where nodes stand in the file.

libcst computes positions by printing a tree, which for a whole file takes three times as long as parsing it. Python's
own parser has already said on which line each statement begins, so only those at the top of the file and of a class that
hold a wanted node are printed, and their lines are shifted.
"""

import ast
from collections.abc import Iterable, Mapping
from typing import cast

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, PositionProvider

from ta_lint.syntax.tree import Node, Tree
from ta_lint.syntax.written import parsed_as


def positions(tree: Tree, nodes: Iterable[Node], syntax: ast.Module | None) -> dict[Node, CodeRange]:
    """The place of each node: lines from 1, columns from 0 in code points, the end exclusive.

    `syntax` is the same file as `ast` parsed it, or None where it cannot; the whole file is printed then.
    """
    parsed = parsed_as(tree.root.body, syntax.body) if syntax is not None else None
    if parsed is None:
        everything = _printed(tree.root)
        return {node: everything[node] for node in nodes}
    found: dict[Node, CodeRange] = {}
    printed: dict[Node, tuple[Mapping[Node, CodeRange], int]] = {}
    for node in nodes:
        part, alone, line = _smallest(node, tree, parsed)
        if part not in printed:
            places = _printed(tree.root.with_changes(body=[alone], header=[]))
            printed[part] = places, line - places[_first(part)].start.line
        places, shift = printed[part]
        found[node] = CodeRange(_moved(places[node].start, shift), _moved(places[node].end, shift))
    return found


def _smallest(
    node: Node, tree: Tree, parsed: dict[Node, list[ast.stmt]]
) -> tuple[cst.BaseStatement, cst.BaseStatement, int]:
    """The statement at the top of the file or of a class that a node is in, the class with nothing else in it, and the
    line that the statement begins on.
    """
    top = tree.top(node)
    block = top.body if isinstance(top, cst.ClassDef) else None
    if isinstance(block, cst.IndentedBlock) and (
        part := next((entry for entry in block.body if tree.contains(entry, node)), None)
    ):
        inner = parsed_as(block.body, cast(ast.ClassDef, parsed[top][0]).body)
        if inner is not None:
            alone = top.with_changes(body=block.with_changes(body=[part]))
            return part, alone, _first_line(inner[part])
    return top, top, _first_line(parsed[top])


def _first_line(statements: list[ast.stmt]) -> int:
    """Where what stands on one line begins, decorators included."""
    decorators = getattr(statements[0], "decorator_list", [])
    first: int = min(item.lineno for item in (statements[0], *decorators))
    return first


def _first(statement: cst.BaseStatement) -> Node:
    """What stands on a statement's first line: to libcst a decorated class begins at its `class`."""
    decorators = statement.decorators if isinstance(statement, (cst.ClassDef, cst.FunctionDef)) else ()
    return decorators[0] if decorators else statement


def _printed(module: cst.Module) -> Mapping[Node, CodeRange]:
    return cst.MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


def _moved(position: CodePosition, lines: int) -> CodePosition:
    return CodePosition(position.line + lines, position.column)
