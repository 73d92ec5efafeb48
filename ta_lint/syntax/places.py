"""Where nodes stand in the file, and how they are written there."""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from typing import Any

import libcst as cst

from ta_lint.core.source import Source
from ta_lint.syntax.concrete import Concrete
from ta_lint.syntax.span import Span
from ta_lint.syntax.tree import Node, Tree

_Range = tuple[int, int]
"""From which to before which character of the text."""

_ENDS_IN_A_NAME = re.compile(r"\w+\Z")

# What a group in parentheses may follow; after another name, and after a bracket or a string, they are those of a call.
_BEFORE_A_GROUP = frozenset(
    "and as assert await del elif else except for from if in is lambda not or raise return while with yield".split()
)
_SOFT = frozenset({"case", "match"})  # which may be names as well

_IN_BRACKETS = (cst.Tuple, cst.GeneratorExp)  # whose place in Python's tree takes in their parentheses


class Places:
    """The places of the nodes of one file: those that Python's parser knows, and libcst's own of all others."""

    def __init__(self, source: Source, tree: Tree, made: Mapping[int, ast.AST] | None) -> None:
        """`made` is what of Python's tree each node was made of, by its `id`; None where libcst made them all itself."""
        self._source = source
        self._tree = tree
        self._made = made or {}
        self._concrete = Concrete(source, tree, made)

    def span(self, node: Node) -> Span:
        """Where a node stands, its own parentheses outside; a decorated function or class from its `def` or `class` on."""
        found = self._range(node)
        if found is None:
            return self._concrete.span(node)
        return Span(*self._position(found[0]), *self._position(found[1]))

    def code(self, node: Node) -> str:
        """A node as it is written, its own parentheses included; over several lines, without the indentation of its block."""
        found = self._whole(node)
        code = self._source.text[slice(*found)] if found is not None else None
        return (
            code if code is not None and "\n" not in code and "\r" not in code else self._concrete.code(node)
        )

    def line(self, node: Node) -> str:
        """The same on one line."""
        found = self._whole(node)
        code = self._source.text[slice(*found)] if found is not None else self._concrete.code(node)
        return " ".join(code.split())

    def parentheses(self, node: cst.BaseExpression) -> list[Span]:
        """Where an expression stands with each pair of its own parentheses, the innermost first."""
        return [Span(*self._position(start), *self._position(end)) for start, end in self._pairs(node)]

    def behind(self, node: Node) -> str:
        """What stands behind a node on its last line."""
        span = self.span(node)
        return self._source.lines[span.end_line - 1][span.end_column - 1 :]

    def comments(self, statement: Node) -> list[str]:
        """The comments of a statement: on the lines above it that hold nothing else, and behind it."""
        decorators = getattr(statement, "decorators", ())
        span = self.span(statement)
        by_line = {comment.line: comment for comment in self._source.comments}
        found = []
        line = (self.span(decorators[0]) if decorators else span).line - 1
        while line and ((above := by_line.get(line)) is None or above.alone):
            if above is not None:
                found.append(above.text)
            elif self._source.lines[line - 1].strip():
                break
            line -= 1
        behind = by_line.get(span.end_line)
        return [*reversed(found), *([behind.text] if behind is not None else [])]

    # -- in the text ----------------------------------------------------------------------------------------------

    def _range(self, node: Node) -> _Range | None:
        """Where a node stands in the text; None where only libcst tells."""
        made = self._made.get(id(node))
        if made is not None:
            found = self._of_python(made)
            return self._without_brackets(node, found) if isinstance(node, _IN_BRACKETS) else found
        derive = _DERIVED.get(type(node))
        return derive(self, node) if derive is not None else None

    def _of_python(self, made: Any) -> _Range:
        return self._offset(made.lineno, made.col_offset), self._offset(made.end_lineno, made.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """The character at a column that counts bytes, as Python's trees do."""
        text = self._source.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins in the text."""
        lines = zip(self._source.lines, self._source.line_ends, strict=True)
        return [0, *accumulate(len(line) + len(end) for line, end in lines)][:-1]

    def _whole(self, node: Node) -> _Range | None:
        """Where a node stands with its own parentheses."""
        found = self._range(node)
        if found is None or not isinstance(node, cst.BaseExpression):
            return found
        pairs = self._pairs(node)
        return pairs[-1] if pairs else found

    def _pairs(self, node: Node) -> list[_Range]:
        """An expression with each pair of its own parentheses, the innermost first."""
        found = self._range(node)
        if found is None:
            span = self._concrete.span(node)
            start = self._starts[span.line - 1] + span.column - 1
            found = start, self._starts[span.end_line - 1] + span.end_column - 1
        return list(self._around(node, *found))

    def _around(self, node: Node, start: int, end: int) -> Iterator[_Range]:
        text = self._source.text
        while True:
            start, end = self._before(start), self._after(end)
            if text[start - 1 : start] != "(" or text[end : end + 1] != ")":
                return
            start, end = start - 1, end + 1
            if not self._groups(node, start):
                return
            yield start, end

    def _groups(self, node: Node, opening: int) -> bool:
        """Whether a parenthesis groups, and is not that of a call, a `def` or the like."""
        made: Any = self._made.get(id(self._tree.statement(node)))
        if made is not None and self._of_python(made)[0] == opening:
            return True  # on the line above may stand anything
        before = self._before(opening)
        name = _ENDS_IN_A_NAME.search(self._source.text, max(0, before - 100), before)
        if name is None:
            return self._source.text[before - 1 : before] not in tuple(")]}\"'.")
        if name[0] in _SOFT:
            return not isinstance(self._tree.parent[node], (cst.Arg, cst.Call))
        return name[0] in _BEFORE_A_GROUP

    def _before(self, offset: int) -> int:
        """Where what stands before a place ends: blanks, line ends and comments are passed over."""
        text = self._source.text
        while offset and text[offset - 1] in " \t\f\r\n\\":
            offset -= 1
            if text[offset] == "\n" or text[offset] == "\r":
                offset = self._comments.get(bisect_right(self._starts, offset), offset)
        return offset

    def _after(self, offset: int) -> int:
        """Where what stands after a place begins."""
        text = self._source.text
        while text[offset : offset + 1] in tuple(" \t\f\r\n\\#"):
            line = bisect_right(self._starts, offset)
            if text[offset] == "#":
                offset = self._starts[line] if line < len(self._starts) else len(text)
            else:
                offset += 1
        return offset

    @cached_property
    def _comments(self) -> dict[int, int]:
        """Where the comment of each line begins in the text."""
        return {
            comment.line: self._starts[comment.line - 1] + comment.column - 1
            for comment in self._source.comments
        }

    # -- what Python's tree does not tell -------------------------------------------------------------------------

    def _without_brackets(self, node: Any, found: _Range) -> _Range | None:
        """A tuple or a generator expression without the parentheses that it may have."""
        start, end = found
        if self._source.text[start] != "(":
            return found
        if isinstance(node, cst.Tuple) and node.elements:
            first = self._whole(node.elements[0].value)
            if first is None or first[0] == start:
                return found if first is not None else None
        return self._after(start + 1), self._before(end - 1)


def _of_part(name: str) -> Any:
    """The place of a node is that of one of its parts, in its parentheses."""

    def derive(places: Places, node: Any) -> _Range | None:
        return places._whole(getattr(node, name))

    return derive


def _of_decorator(places: Places, node: Any) -> _Range | None:
    found = places._whole(node.decorator)
    start = places._before(found[0]) - 1 if found is not None else 0
    return (start, found[1]) if found is not None else None


def _of_body(places: Places, node: Any) -> _Range | None:
    first, last = places._range(node.body[0]), places._range(node.body[-1])
    return (first[0], last[1]) if first is not None and last is not None else None


def _of_index(places: Places, node: Any) -> _Range | None:
    return places._whole(node.value) if not node.star else None


def _of_name(places: Places, node: Any) -> _Range | None:
    """A name that is no expression: what an attribute ends with, and what an argument begins with."""
    parent: Any = places._tree.parent[node]
    ends = isinstance(parent, cst.Attribute) and parent.attr is node
    if not ends and not (isinstance(parent, cst.Arg) and parent.keyword is node):
        return None
    around = places._range(parent)
    if around is None:
        return None
    length = len(node.value)
    start, end = (around[1] - length, around[1]) if ends else (around[0], around[0] + length)
    return (start, end) if places._source.text[start:end] == node.value else None


_DERIVED = {
    cst.Arg: _of_part("value"),
    cst.AssignTarget: _of_part("target"),
    cst.Decorator: _of_decorator,
    cst.Element: _of_part("value"),
    cst.IndentedBlock: _of_body,
    cst.Index: _of_index,
    cst.Name: _of_name,
    cst.SimpleStatementLine: _of_body,
    cst.SimpleStatementSuite: _of_body,
    cst.SubscriptElement: _of_part("slice"),
}
