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
from ta_lint.facts.written import lines

_Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def positions(tree: Tree, nodes: Iterable[Node], syntax: ast.Module | None) -> dict[Node, CodeRange]:
    """The place of each node: lines from 1, columns from 0 in code points, the end exclusive.

    `syntax` is the same file as `ast` parsed it, or None where it cannot; the whole file is printed then.
    """
    of_statements = lines(tree.root, syntax) if syntax is not None else None
    if of_statements is None:
        everything = _printed(tree.root)
        return {node: everything[node] for node in nodes}
    found: dict[Node, CodeRange] = {}
    printed: dict[Node, Mapping[Node, CodeRange]] = {}
    for node in nodes:
        statement = tree.top(node)
        if statement not in printed:
            printed[statement] = _printed(tree.root.with_changes(body=[statement], header=[]))
        place = printed[statement][node]
        shift = of_statements[statement][0] - printed[statement][_first(statement)].start.line
        found[node] = CodeRange(_moved(place.start, shift), _moved(place.end, shift))
    return found


def _first(statement: _Statement) -> Node:
    """What stands on a statement's first line: to libcst a decorated class begins at its `class`."""
    decorators = statement.decorators if isinstance(statement, (cst.ClassDef, cst.FunctionDef)) else ()
    return decorators[0] if decorators else statement


def _printed(module: cst.Module) -> Mapping[Node, CodeRange]:
    return cst.MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


def _moved(position: CodePosition, lines: int) -> CodePosition:
    return CodePosition(position.line + lines, position.column)
