"""The statements of a file as they are written: each parsed by libcst alone, when somebody asks.

A skeleton says what a check suspects and where, but not how it is written, which a message quotes and a fix needs. To
know that, libcst need not parse a file of thousands of lines, but the top-level statement of that place. Node by node,
in source order, it is what the skeleton has there.
"""

import ast
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice

import libcst as cst

from ta_lint.core.bounds import check_work
from ta_lint.core.source import Source
from ta_lint.syntax.tree import Node, Tree


class Differs(Exception):
    """libcst makes something else of a statement alone than of the file, or than the skeleton has."""


class Written:
    """The top-level statements of a skeleton, by its own nodes."""

    def __init__(self, source: Source, root: cst.Module, syntax: ast.Module) -> None:
        self._source = source
        self._root = root
        self._syntax = syntax
        self._alone: dict[int, Tree] = {}  # by the `id` of the statement

    def twin(self, node: Node, tree: Tree) -> tuple[cst.Module, Node]:
        """What libcst makes of a node of the skeleton, and the module of its statement alone.

        Raises:
            Differs: libcst makes other nodes of the statement.
            Unreadable: it would take libcst minutes.
            cst.ParserSyntaxError: it cannot parse the statement.
        """
        statement = tree.top(node)
        theirs = self._parsed(statement, tree)
        return theirs.root, theirs.nodes[1 + tree.order(node) - tree.order(statement)]

    def root(self, nodes: Iterable[Node], tree: Tree) -> cst.Module:
        """The skeleton with the statements of these nodes, and all that anybody has asked for, as libcst has them.

        Raises:
            Differs: they do not indent or end their lines alike, or libcst makes other nodes of one.
            Unreadable: it would take libcst minutes.
            cst.ParserSyntaxError: libcst cannot parse one.
        """
        for node in nodes:
            self._parsed(tree.top(node), tree)
        theirs = {own: alone.root for own, alone in self._alone.items()}
        styles = {(alone.default_indent, alone.default_newline) for alone in theirs.values()}
        if len(styles) != 1:
            raise Differs
        indent, newline = styles.pop()
        body = [theirs[id(own)].body[0] if id(own) in theirs else own for own in self._root.body]
        return cst.Module(body, default_indent=indent, default_newline=newline)

    def _parsed(self, statement: Node, tree: Tree) -> Tree:
        """A statement, with the comments before it, as a file of its own."""
        found = self._alone.get(id(statement))
        if found is None:
            before, syntax = self._parts[id(statement)]
            check_work(syntax)
            last = _end(syntax)
            parts = zip(self._source.lines[before:last], self._source.line_ends[before:last], strict=True)
            root = cst.parse_module("".join(line + end for line, end in parts))
            found = Tree(root)
            if list(map(type, tree.subtree(statement))) != list(map(type, found.nodes[1:])):
                raise Differs
            self._alone[id(statement)] = found
        return found

    @cached_property
    def _parts(self) -> dict[int, tuple[int, list[ast.stmt]]]:
        """The last line of the statement before each, and what Python's parser makes of it."""
        parsed = parsed_as(self._root.body, self._syntax.body)
        if parsed is None:
            raise Differs
        ends = [0, *map(_end, parsed.values())]
        return dict(zip(map(id, parsed), zip(ends, parsed.values(), strict=False), strict=True))


def _end(statements: list[ast.stmt]) -> int:
    return statements[-1].end_lineno or 0


def parsed_as(body: Sequence[Node], syntax: list[ast.stmt]) -> dict[Node, list[ast.stmt]] | None:
    """What Python's parser makes of each statement of a list: of `a; b` two; None if the two parsers disagree."""
    parsed = iter(syntax)
    found: dict[Node, list[ast.stmt]] = {}
    for statement in body:
        count = len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
        found[statement] = list(islice(parsed, count))
        if len(found[statement]) < count:
            return None
    return found if next(parsed, None) is None else None
