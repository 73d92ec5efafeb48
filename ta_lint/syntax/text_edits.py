"""Turns edits of nodes into edits of text, from the places of the nodes and the layout of their lines.

A fix that would have to change anything else is dropped: the result is None.
"""

import re
import sys
from itertools import dropwhile, pairwise, takewhile
from typing import cast

import libcst as cst

from ta_lint.core.finding import TextEdit
from ta_lint.core.source import Source
from ta_lint.syntax.edits import (
    Addition,
    Anchor,
    Edit,
    Insertion,
    ProposedFix,
    Removal,
    Replacement,
    Side,
    Unwrapping,
    is_atom,
)
from ta_lint.syntax.imports import imported_before
from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Node, Tree


def text_edits(fix: ProposedFix, tree: Tree, source: Source, places: Places) -> tuple[TextEdit, ...] | None:
    """The text edits of a fix in order of place; None if it cannot be made."""
    return _Converter(fix, tree, source, places).edits()


class _Converter:
    """Converts one fix."""

    def __init__(self, fix: ProposedFix, tree: Tree, source: Source, places: Places) -> None:
        self._fix = fix
        self._tree = tree
        self._source = source
        self._places = places

    def edits(self) -> tuple[TextEdit, ...] | None:
        if not all(self._tree.has(_node(edit)) for edit in self._fix.edits):
            return None  # it is about another file
        if _empties_a_block(self._fix.edits, self._tree):
            return None
        made: list[TextEdit] = []
        for edit in self._fix.edits:
            found = self._converted(edit)
            if not found or any(map(self._holds_comment, found)):
                return None
            made += found
        for code in self._fix.imports:
            place = _place_of_import(code, self._fix, self._tree, self._places)
            if place is None:
                return None
            made.append(self._import(code, place))
        made = [edit for edit in made if edit.text or _start(edit) != _end(edit)]
        made.sort(key=lambda edit: (_start(edit), _end(edit)))
        overlapping = any(_end(edit) > _start(following) for edit, following in pairwise(made))
        return tuple(made) if made and not overlapping else None

    def _converted(self, edit: Edit) -> list[TextEdit]:
        """The text edits of an edit; empty if it cannot be made."""
        if isinstance(edit, Replacement):
            start, end = self._around(edit)
            code = re.sub(r"(?<!\r)\n", self._source.newline, edit.code)
            return [TextEdit(*start, *end, code)] if start <= end else []
        if isinstance(edit, Unwrapping):
            return self._unwrapped(edit)
        if isinstance(edit, Addition):
            return self._added(edit)
        if not _has_lines_of_its_own(edit.statement, self._tree):
            return []
        return self._inserted(edit) if isinstance(edit, Insertion) else [self._removed(edit)]

    def _around(self, edit: Replacement) -> tuple[tuple[int, int], tuple[int, int]]:
        """The start and end of a replacement, including the parentheses to replace."""
        start, end = self._position(edit.start), self._position(edit.end)
        if not edit.parentheses:
            return start, end
        for around in self._places.parentheses(cast(cst.BaseExpression, edit.start.node)):
            before = self._source.lines[around.line - 1][: around.column - 1]
            if around.line != start[0] or around.end_line != end[0] or before[-1:].isalnum():
                break
            start, end = (around.line, around.column), (around.end_line, around.end_column)
        return start, end

    def _unwrapped(self, edit: Unwrapping) -> list[TextEdit]:
        start, end = (self._position(Anchor(edit.outer, side)) for side in Side)
        inner_start, inner_end = (self._position(Anchor(edit.inner, side)) for side in Side)
        before = self._source.lines[start[0] - 1][: start[1] - 1].rstrip()[-1:]
        after = self._source.lines[end[0] - 1][end[1] - 1 :].lstrip()[:1]
        stands_alone = before in ("(", "[", ",") and after in (")", "]", ",")
        bare = is_atom(edit.inner) or (stands_alone and inner_start[0] == inner_end[0])
        return [
            TextEdit(*start, *inner_start, "" if bare else "("),
            TextEdit(*inner_end, *end, "" if bare else ")"),
        ]

    def _added(self, addition: Addition) -> list[TextEdit]:
        value = addition.last.value
        if isinstance(value, cst.GeneratorExp) and not self._places.parentheses(value):
            return []  # with another argument it would need parentheses
        line, column = self._position(Anchor(addition.last, Side.START))
        indent = self._source.lines[line - 1][: column - 1]
        separator = (
            " " if indent.strip() else (self._source.line_ends[line - 1] or self._source.newline) + indent
        )
        end = self._position(Anchor(addition.last, Side.END))
        return [TextEdit(*end, *end, f",{separator}{addition.code}")]

    def _position(self, anchor: Anchor) -> tuple[int, int]:
        span = self._places.span(anchor.node)
        return span[:2] if anchor.side is Side.START else span[2:]

    def _inserted(self, insertion: Insertion) -> list[TextEdit]:
        lines, ends = self._source.lines, self._source.line_ends
        place = self._places.span(_first(insertion.statement))
        indent = lines[place.line - 1][: place.column - 1]
        if indent.strip():
            return []
        code = [indent.replace("\f", "") + line for line in insertion.code.split("\n")]
        if insertion.side is Side.START:
            newline = ends[place.line - 1] or self._source.newline
            first = place.line if insertion.code.startswith("@") else self._with_comments(place.line, indent)
            return [TextEdit(first, 1, first, 1, "".join(line + newline for line in code))]
        last = self._places.span(insertion.statement).end_line
        if newline := ends[last - 1]:
            return [TextEdit(last + 1, 1, last + 1, 1, "".join(line + newline for line in code))]
        column = len(lines[last - 1]) + 1
        return [TextEdit(last, column, last, column, "".join(self._source.newline + line for line in code))]

    def _with_comments(self, line: int, indent: str) -> int:
        """The first line of a statement including the comments directly above it with the same indentation."""
        alone = {(comment.line, comment.column) for comment in self._source.comments if comment.alone}
        while (line - 1, len(indent) + 1) in alone:
            line -= 1
        return line

    def _removed(self, removal: Removal) -> TextEdit:
        lines = self._source.lines
        first = self._places.span(_first(removal.statement)).line
        last = self._places.span(removal.statement).end_line
        if self._source.line_ends[last - 1]:
            return TextEdit(first, 1, last + 1, 1, "")
        end = len(lines[last - 1]) + 1
        if first == 1:
            return TextEdit(1, 1, last, end, "")
        return TextEdit(
            first - 1, len(lines[first - 2]) + 1, last, end, ""
        )  # removes the line end before it instead

    def _holds_comment(self, edit: TextEdit) -> bool:
        return any(
            _start(edit) <= (comment.line, comment.column) < _end(edit) for comment in self._source.comments
        )

    def _import(self, code: str, place: Node) -> TextEdit:
        line = self._places.span(_first(place)).line
        newline = self._source.line_ends[line - 1] or self._source.newline
        apart = _is_standard(code) and not _is_standard(self._source.lines[line - 1])
        return TextEdit(line, 1, line, 1, code + newline * (1 + apart), shared=True)


def _start(edit: TextEdit) -> tuple[int, int]:
    return edit.line, edit.column


def _end(edit: TextEdit) -> tuple[int, int]:
    return edit.end_line, edit.end_column


def _first(statement: Node) -> Node:
    """The node on a statement's first line: to libcst, a decorated class begins at `class`."""
    decorators = getattr(statement, "decorators", ())
    return decorators[0] if decorators else statement


def _has_lines_of_its_own(statement: Node, tree: Tree) -> bool:
    """Whether nothing else stands on the lines of a statement: no `a; b`, no `if x: y`, no `elif`."""
    line = tree.parent.get(statement)
    if isinstance(statement, cst.BaseSmallStatement):
        return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    return isinstance(statement, cst.BaseCompoundStatement) and isinstance(
        line, (cst.Module, cst.IndentedBlock)
    )


def _empties_a_block(edits: tuple[Edit, ...], tree: Tree) -> bool:
    """Whether the edits remove everything in a block and insert nothing."""
    removed = {edit.statement for edit in edits if isinstance(edit, Removal)}
    filled = {tree.block(edit.statement) for edit in edits if isinstance(edit, Insertion)}
    blocks = {tree.block(statement) for statement in removed} - filled
    return any(
        isinstance(block, cst.IndentedBlock) and all(_is_removed(inner, removed) for inner in block.body)
        for block in blocks
    )


def _is_removed(statement: Node, removed: set[Node]) -> bool:
    if isinstance(statement, cst.SimpleStatementLine):
        return all(small in removed for small in statement.body)
    return statement in removed


def _place_of_import(code: str, fix: ProposedFix, tree: Tree, places: Places) -> Node | None:
    """The statement before which to insert a new import: the first that imports the same package, so that it is loaded no
    earlier than now; otherwise, in the first block of imports, the first of the same kind, or the first of all.

    If the fix stands above these, or nothing is imported, the first after the docstring and `from __future__`.
    """
    first_edit = min((_node(edit) for edit in fix.edits), key=tree.order)
    beside = imported_before(_package(code), first_edit, tree)
    if beside is not None and not _is_standard(code):
        return beside
    statements = [statement for statement in tree.root.body if not _must_come_first(statement)]
    later = list(dropwhile(lambda statement: not _imports(statement, tree), statements))
    if not later or tree.before(first_edit, later[0]):
        return statements[0] if statements else None
    first = list(takewhile(lambda statement: _imports(statement, tree), later))
    alike = (statement for statement in first if _is_standard(_code(statement, places)) == _is_standard(code))
    return next(alike, later[0])


def _imports(statement: Node, tree: Tree) -> bool:
    """Whether a statement imports something when the file is loaded."""
    return any(tree.home(found) is tree.root for found in tree.within(statement, cst.Import, cst.ImportFrom))


def _code(statement: Node, places: Places) -> str:
    """The code of the first small statement on a line; empty for another statement."""
    return places.line(statement.body[0]) if isinstance(statement, cst.SimpleStatementLine) else ""


def _is_standard(code: str) -> bool:
    """Whether code is an import from the standard library."""
    return _package(code) in sys.stdlib_module_names


def _package(code: str) -> str:
    """The package of an import statement; empty for other code."""
    found = re.match(r"(?:import|from)\s+(\w+)", code)
    return found[1] if found is not None else ""


def _node(edit: Edit) -> Node:
    if isinstance(edit, Replacement):
        return edit.start.node
    if isinstance(edit, Unwrapping):
        return edit.outer
    return edit.last if isinstance(edit, Addition) else edit.statement


def _must_come_first(statement: Node) -> bool:
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if isinstance(small, cst.ImportFrom):
        return isinstance(small.module, cst.Name) and small.module.value == "__future__"
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
