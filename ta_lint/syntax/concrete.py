"""The only use of libcst's own parser: for the layout of a statement, and for files that Python cannot parse.

Nodes converted from Python's tree have no layout. If a node's place cannot be found from Python's tree, libcst parses the
top-level statement around it; in source order, the result has the same nodes as the tree has there.
"""

import ast
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, MetadataWrapper, PositionProvider

from ta_lint.core.bounds import check_work, may_take_minutes
from ta_lint.core.errors import Unreadable, oneline, refused
from ta_lint.core.former import original, readable
from ta_lint.core.letters import undisguised
from ta_lint.core.lines import LINE_END
from ta_lint.core.source import Source
from ta_lint.syntax.span import Span
from ta_lint.syntax.tree import Node, Tree

# Errors that newer Pythons raise as well: too deep nesting, where libcst needs minutes or overflows the stack, and literals.
_FINAL = re.compile(r"too many|\((?:unicode|value) error\)|Exceeds the limit")


def whole(source: Source) -> cst.Module:
    """Parse a file with libcst, which knows newer syntax than this Python may.

    Raises:
        Unreadable: neither Python nor libcst can parse the file; the position and the reason are Python's.
    """
    syntax = source.syntax
    if isinstance(syntax, ast.Module):
        check_work([syntax])
    elif _FINAL.search(syntax.msg) is not None or may_take_minutes(source):
        raise refused(syntax)
    try:
        return cst.parse_module(undisguised(source.readable))
    except cst.ParserSyntaxError as error:
        if isinstance(source.symbols, SyntaxError):  # which refuses more than `syntax` does
            raise refused(source.symbols) from error
        raise Unreadable(
            f"libcst cannot parse it: {oneline(error)}", error.raw_line, error.raw_column + 1
        ) from error


class Concrete:
    """The statements of a file as libcst parses them, each on demand."""

    def __init__(self, source: Source, tree: Tree, made: Mapping[int, ast.AST] | None) -> None:
        """`made` maps the `id` of each node to the `ast` node that it was made from; None if libcst parsed the file."""
        self._source = source
        self._tree = tree
        self._made = made
        self._statements: dict[int, _Statement] = {}  # by the number of the first node

    def span(self, node: Node) -> Span:
        """The span of a node without its own parentheses."""
        return self._statement(node).span(self._tree.number[id(node)])

    def code(self, node: Node) -> str:
        """The source code of a node with its own parentheses."""
        code = self._statement(node).code(self._tree.number[id(node)])
        return code if self._source.former is None else original(code)

    def _statement(self, node: Node) -> "_Statement":
        top = self._tree.top(node) if self._made is not None else self._tree.root
        number = self._tree.number[id(top)]
        if number not in self._statements:
            self._statements[number] = self._parsed(top)
        return self._statements[number]

    def _parsed(self, top: Any) -> "_Statement":
        """Parse a top-level statement with libcst.

        Raises:
            Unreadable: libcst would take minutes.
        """
        if self._made is None:
            return _Statement(self._tree, 0, 0, self._source.lines)
        small = top.body if isinstance(top, cst.SimpleStatementLine) else [top]
        statements: list[Any] = [self._made[id(part)] for part in small]
        check_work(statements)
        decorators = getattr(statements[0], "decorator_list", ())
        above = min(part.lineno for part in (statements[0], *decorators)) - 1
        lines = slice(above, statements[-1].end_lineno)
        parts = zip(self._source.lines[lines], self._source.line_ends[lines], strict=True)
        text = "".join(line + end for line, end in parts)
        text = text if self._source.former is None else readable(text)
        tree = Tree(cst.parse_module(undisguised(text)))
        assert list(map(type, tree.nodes[1:])) == list(map(type, self._tree.subtree(top)))
        return _Statement(tree, self._tree.number[id(top)] - 1, above, self._source.lines)


class _Statement:
    """The lines of one top-level statement, parsed by libcst."""

    def __init__(self, tree: Tree, number: int, above: int, lines: list[str]) -> None:
        """`number` is that of the first node in the file's tree; `lines` are the file's, and `above` is how many come before."""
        self._tree = tree
        self._lines = lines
        self._number = number
        self._above = above

    def span(self, number: int) -> Span:
        place = self._places[self._node(number)]
        return Span(*self._position(place.start), *self._position(place.end))

    def _position(self, printed: CodePosition) -> tuple[int, int]:
        """Convert a position in libcst's output to one in the file.

        libcst repeats a form feed in the indentation of one line on all lines of the block.
        """
        line = self._lines[printed.line + self._above - 1]
        more = len(self._printed[printed.line - 1]) - len(line)
        return printed.line + self._above, max(0, printed.column - max(0, more)) + 1

    @cached_property
    def _printed(self) -> list[str]:
        return LINE_END.split(self._tree.root.code)

    def code(self, number: int) -> str:
        return self._tree.root.code_for_node(self._node(number))

    def _node(self, number: int) -> Node:
        node: Node = self._tree.nodes[number - self._number]
        return node

    @cached_property
    def _places(self) -> Mapping[Node, CodeRange]:
        return MetadataWrapper(self._tree.root, unsafe_skip_copy=True).resolve(PositionProvider)
