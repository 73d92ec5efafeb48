"""The spans and the source code of nodes."""

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
"""Start and exclusive end in the text, in characters."""

_ENDS_IN_A_NAME = re.compile(r"\w+\Z")

# Keywords that may precede a parenthesised expression; after another name, a bracket or a string, parentheses are a call's.
_BEFORE_A_GROUP = frozenset(
    "and as assert await del elif else except for from if in is lambda not or raise return while with yield".split()
)
_SOFT_KEYWORDS = frozenset({"case", "match"})  # these may also be names

_IN_BRACKETS = (cst.Tuple, cst.GeneratorExp)  # their spans in Python's tree include the parentheses


class Places:
    """The places of the nodes of one file: from Python's parser if it knows them, otherwise from libcst."""

    def __init__(self, source: Source, tree: Tree, made: Mapping[int, ast.AST] | None) -> None:
        """`made` maps the `id` of each node to the `ast` node that it was made from; None if libcst parsed the file."""
        self._source = source
        self._tree = tree
        self._made = made or {}
        self._concrete = Concrete(source, tree, made)

    def span(self, node: Node) -> Span:
        """The span of a node without its own parentheses; of a decorated function or class, from `def` or `class` on."""
        found = self._range(node)
        if found is None:
            return self._concrete.span(node)
        return Span(*self._position(found[0]), *self._position(found[1]))

    def code(self, node: Node) -> str:
        """The source code of a node with its own parentheses; over several lines, without the indentation of its block."""
        found = self._whole(node)
        code = self._source.text[slice(*found)] if found is not None else None
        return (
            code if code is not None and "\n" not in code and "\r" not in code else self._concrete.code(node)
        )

    def line(self, node: Node) -> str:
        """The source code of a node on one line."""
        found = self._whole(node)
        code = self._source.text[slice(*found)] if found is not None else self._concrete.code(node)
        return " ".join(code.split())

    def parentheses(self, node: cst.BaseExpression) -> list[Span]:
        """The span of an expression with each pair of its own parentheses, the innermost first."""
        return [Span(*self._position(start), *self._position(end)) for start, end in self._pairs(node)]

    def behind(self, node: Node) -> str:
        """The text after a node on its last line."""
        span = self.span(node)
        return self._source.lines[span.end_line - 1][span.end_column - 1 :]

    def comments(self, statement: Node) -> list[str]:
        """The comments of a statement: on comment lines directly above it, and after it on its last line."""
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
        """The range of a node in the text; None if only libcst knows it."""
        made = self._made.get(id(node))
        if made is not None:
            found = self._of_python(made)
            return self._without_brackets(node, found) if isinstance(node, _IN_BRACKETS) else found
        derive = _DERIVED.get(type(node))
        return derive(self, node) if derive is not None else None

    def _of_python(self, made: Any) -> _Range:
        return self._offset(made.lineno, made.col_offset), self._offset(made.end_lineno, made.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """The offset in characters of a line and a column in bytes, as Python's tree counts."""
        text = self._source.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    @cached_property
    def _starts(self) -> list[int]:
        """The offset of each line."""
        lines = zip(self._source.lines, self._source.line_ends, strict=True)
        return [0, *accumulate(len(line) + len(end) for line, end in lines)][:-1]

    def _whole(self, node: Node) -> _Range | None:
        """The range of a node with its own parentheses."""
        found = self._range(node)
        if found is None or not isinstance(node, cst.BaseExpression):
            return found
        pairs = self._pairs(node)
        return pairs[-1] if pairs else found

    def _pairs(self, node: Node) -> list[_Range]:
        """The range of an expression with each pair of its own parentheses, the innermost first."""
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
        """Whether a parenthesis groups an expression, rather than belonging to a call, a `def` or the like."""
        made: Any = self._made.get(id(self._tree.statement(node)))
        if made is not None and self._of_python(made)[0] == opening:
            return True  # it begins the statement, so what is before it does not matter
        before = self._before(opening)
        name = _ENDS_IN_A_NAME.search(self._source.text, max(0, before - 100), before)
        if name is None:
            return self._source.text[before - 1 : before] not in tuple(")]}\"'.")
        if name[0] in _SOFT_KEYWORDS:
            return not isinstance(self._tree.parent[node], (cst.Arg, cst.Call))
        return name[0] in _BEFORE_A_GROUP

    def _before(self, offset: int) -> int:
        """Skip blanks, line ends and comments backwards; return the end of what stands before."""
        text = self._source.text
        while offset and text[offset - 1] in " \t\f\r\n\\":
            offset -= 1
            if text[offset] == "\n" or text[offset] == "\r":
                offset = self._comments.get(bisect_right(self._starts, offset), offset)
        return offset

    def _after(self, offset: int) -> int:
        """Skip blanks, line ends and comments forwards; return the start of what follows."""
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
        """The offset of the comment on each line."""
        return {
            comment.line: self._starts[comment.line - 1] + comment.column - 1
            for comment in self._source.comments
        }

    # -- what Python's tree does not contain ----------------------------------------------------------------------

    def _without_brackets(self, node: Any, found: _Range) -> _Range | None:
        """The range of a tuple or a generator expression without its parentheses, if it has any."""
        start, end = found
        if self._source.text[start] != "(":
            return found
        if isinstance(node, cst.Tuple) and node.elements:
            first = self._whole(node.elements[0].value)
            if first is None or first[0] == start:
                return found if first is not None else None
        return self._after(start + 1), self._before(end - 1)


def _of_part(name: str) -> Any:
    """A function that gives a node the range of one of its fields, with parentheses."""

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
    """The range of a name that is no expression: of a definition, at the end of an attribute, or the keyword of an argument."""
    parent: Any = places._tree.parent[node]
    if isinstance(parent, cst.ClassDef | cst.FunctionDef):
        return _of_defined(places, node, parent)
    ends = isinstance(parent, cst.Attribute) and parent.attr is node
    if not ends and not (isinstance(parent, cst.Arg) and parent.keyword is node):
        return None
    around = places._range(parent)
    if around is None:
        return None
    length = len(node.value)
    start, end = (around[1] - length, around[1]) if ends else (around[0], around[0] + length)
    return (start, end) if places._source.text[start:end] == node.value else None


def _of_defined(places: Places, name: Any, definition: Any) -> _Range | None:
    """The range of the name of a class or function, which stands behind the keywords."""
    found = places._range(definition)
    if found is None:
        return None
    start, text = found[0], places._source.text
    keywords = (
        "class" if isinstance(definition, cst.ClassDef) else "async def" if definition.asynchronous else "def"
    )
    for keyword in keywords.split():
        start = places._after(start + len(keyword))
    end = start + len(name.value)
    return (start, end) if text[start:end] == name.value else None


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
