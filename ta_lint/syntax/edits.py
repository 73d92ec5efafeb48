"""Fixes that checks propose, as edits of nodes; `syntax.text_edits` turns them into text edits.

Everything outside the edits stays, to the byte: an edit replaces a node, inserts beside it, or adds lines before or after
a statement.
"""

from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Node, Tree


class Side(StrEnum):
    START = "start"
    END = "end"


@dataclass(frozen=True, eq=False)
class Anchor:
    """The start or end of a node, without its own parentheses."""

    node: Node
    side: Side


@dataclass(frozen=True, eq=False)
class Replacement:
    """Replaces what stands from `start` to `end` with `code`; equal anchors insert it.

    With `parentheses`, the node's own parentheses are replaced too if they are on the same line.
    """

    start: Anchor
    end: Anchor
    code: str
    parentheses: bool = False


@dataclass(frozen=True, eq=False)
class Insertion:
    """Inserts lines before or after a statement; the unindented `code` gets the indentation of the statement.

    After a compound statement means after its whole body; before a statement, before the comments directly above it.
    """

    statement: Node
    side: Side
    code: str


@dataclass(frozen=True, eq=False)
class Removal:
    """Removes the lines of a statement with its trailing comment."""

    statement: Node


@dataclass(frozen=True, eq=False)
class Unwrapping:
    """Replaces `outer` with `inner`, a node inside it; adds parentheses if precedence may require them."""

    outer: Node
    inner: Node


@dataclass(frozen=True, eq=False)
class Addition:
    """Adds an argument after the last one of a call, on its own line if the last one has its own."""

    last: cst.Arg
    code: str


Edit = Replacement | Insertion | Removal | Unwrapping | Addition

# Expressions that need no parentheses before a method call or an attribute.
_ATOMS = (
    cst.Attribute,
    cst.Call,
    cst.Dict,
    cst.FormattedString,
    cst.List,
    cst.ListComp,
    cst.Name,
    cst.SimpleString,
    cst.Subscript,
)


@dataclass(frozen=True, eq=False)
class ProposedFix:
    """The fix of a suspicion.

    `title` is an imperative: "call it". `imports` are the import statements that the new code needs, added once if the
    file lacks them. The page of the rule says whether its fix is safe; `unsafe` marks a fix that is less safe than that.
    """

    title: str
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()
    unsafe: bool = False


def replace(node: Node, code: str) -> Replacement:
    """Replace a node with `code`, keeping the node's own parentheses; `code` must be valid in that context."""
    return Replacement(Anchor(node, Side.START), Anchor(node, Side.END), code)


def replace_with_atom(node: cst.BaseExpression, code: str) -> Replacement:
    """Replace a node and its own parentheses with `code` that never needs parentheses, such as a call."""
    return Replacement(Anchor(node, Side.START), Anchor(node, Side.END), code, parentheses=True)


def insert_after(node: Node, code: str) -> Replacement:
    """Insert `code` directly after a node: `()` after `optimizer.step`."""
    return Replacement(Anchor(node, Side.END), Anchor(node, Side.END), code)


def wrap(node: Node, before: str, after: str) -> tuple[Replacement, Replacement]:
    """Insert `before` and `after` around a node, which stays: `copy.deepcopy(` and `)`."""
    start, end = Anchor(node, Side.START), Anchor(node, Side.END)
    return Replacement(start, start, before), Replacement(end, end, after)


def unwrap(outer: Node, inner: Node) -> tuple[Edit, ...]:
    """Replace a node with one inside it: `F.softmax(x, dim=1)` with `x`."""
    return (Unwrapping(outer, inner),)


def call_method(node: Node, code: str) -> tuple[Edit, ...]:
    """Call a method on an expression, in parentheses if needed: `.detach()` turns `a + b` into `(a + b).detach()`."""
    return (insert_after(node, code),) if is_atom(node) else wrap(node, "(", f"){code}")


def is_atom(node: Node) -> bool:
    """Whether an expression never needs parentheses."""
    return isinstance(node, _ATOMS)


def add_argument(call: cst.Call, code: str) -> Replacement | Addition | None:
    """Add an argument after the last one of a call; None if it spreads `**kwargs`, which may give that one."""
    if not call.args:
        return Replacement(Anchor(call.func, Side.END), Anchor(call, Side.END), f"({code})")
    return Addition(call.args[-1], code) if not any(arg.star == "**" for arg in call.args) else None


def set_argument(call: cst.Call, keyword: str, code: str, given: Node | None) -> Edit | None:
    """Set `keyword=code` in a call, replacing the value `given` if there is one; None as for `add_argument`."""
    return replace(given, code) if given is not None else add_argument(call, f"{keyword}={code}")


def remove_argument(call: cst.Call, arg: cst.Arg) -> Replacement:
    """Remove an argument from a call."""
    index = call.args.index(arg)
    if index + 1 < len(call.args):
        return Replacement(Anchor(arg, Side.START), Anchor(call.args[index + 1], Side.START), "")
    if index:
        return Replacement(Anchor(call.args[index - 1], Side.END), Anchor(arg, Side.END), "")
    return Replacement(Anchor(call.func, Side.END), Anchor(call, Side.END), "()")


def insert_line_before(tree: Tree, node: Node, code: str) -> Insertion:
    """Insert lines before the statement of a node."""
    return Insertion(_statement(tree, node), Side.START, code)


def insert_line_after(tree: Tree, node: Node, code: str) -> Insertion:
    """Insert lines after the statement of a node."""
    return Insertion(_statement(tree, node), Side.END, code)


def remove_statement(tree: Tree, node: Node) -> Removal:
    """Remove the statement of a node; if that empties its block, the fix is dropped."""
    return Removal(_statement(tree, node))


def remove_imported(tree: Tree, alias: cst.ImportAlias) -> Replacement | Removal:
    """Remove one of the names of an import, with the statement if there is no other."""
    statement = tree.parent[alias]
    assert isinstance(statement, (cst.Import, cst.ImportFrom))
    assert not isinstance(statement.names, cst.ImportStar)
    aliases = statement.names
    if len(aliases) == 1:
        return remove_statement(tree, statement)
    index = list(aliases).index(alias)
    if index + 1 < len(aliases):
        return Replacement(Anchor(alias, Side.START), Anchor(aliases[index + 1], Side.START), "")
    return Replacement(Anchor(aliases[index - 1], Side.END), Anchor(alias, Side.END), "")


def _statement(tree: Tree, node: Node) -> Node:
    """The statement of a node; for a line, its first statement."""
    return tree.statement(node.body[0] if isinstance(node, cst.SimpleStatementLine) else node)


def move(tree: Tree, places: Places, node: Node, beside: Node, side: Side) -> tuple[Edit, ...]:
    """Move the statement of a node before or after another node's; empty if that may change more than the order.

    Both must stand on their own lines in one block, and the moved statement must be one line, which keeps its comment.
    """
    line, other = tree.parent[tree.statement(node)], tree.parent[tree.statement(beside)]
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(other, cst.SimpleStatementLine):
        return ()
    if len(line.body) > 1 or len(other.body) > 1 or tree.parent[line] is not tree.parent[other]:
        return ()
    comment = places.behind(line.body[0]).strip()
    code = places.code(line.body[0]) + (f"  {comment}" if comment.startswith("#") else "")
    return () if "\n" in code else (Removal(line.body[0]), Insertion(other.body[0], side, code))
