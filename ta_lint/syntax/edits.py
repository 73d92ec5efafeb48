"""Fixes as edits of nodes: what a check proposes; `facts.placing` turns them into edits of text.

What no edit names stays as it is, to the byte: an edit puts code in the place of a node, beside it, or on lines of its
own before or after a statement.
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
    """A place in the text: where a node starts or ends, its own parentheses outside."""

    node: Node
    side: Side


@dataclass(frozen=True, eq=False)
class Replacement:
    """`code` in the place of what stands from `start` to `end`; between two equal places it is inserted.

    With `parentheses`, those of a node of its own go with it where they are on its line.
    """

    start: Anchor
    end: Anchor
    code: str
    parentheses: bool = False


@dataclass(frozen=True, eq=False)
class Insertion:
    """`code`, unindented, on lines of its own before or after a statement, indented as the statement is.

    After a compound statement is after its whole body; before a statement is before the comments directly above it.
    """

    statement: Node
    side: Side
    code: str


@dataclass(frozen=True, eq=False)
class Removal:
    """The lines of a statement are dropped, its own trailing comment included; what stands around it stays."""

    statement: Node


@dataclass(frozen=True, eq=False)
class Unwrapping:
    """`inner` in the place of `outer`, which is around it; in parentheses where it could fall apart there."""

    outer: Node
    inner: Node


@dataclass(frozen=True, eq=False)
class Addition:
    """An argument after the last one of a call, on a line of its own where that one has its own."""

    last: cst.Arg
    code: str


Edit = Replacement | Insertion | Removal | Unwrapping | Addition

# What a method call or an attribute can follow without parentheses.
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
    """How a suspicion can be put right.

    `title` says it in the imperative: "call it". `imports` are the import statements that the new code needs, added
    once where the file lacks them. Whether a fix is safe stands on the page of its rule; `unsafe` marks one that is less
    so than the page says.
    """

    title: str
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()
    unsafe: bool = False


def replace(node: Node, code: str) -> Replacement:
    """`code` instead of a node, in the parentheses that the node may have; what stands around must admit it."""
    return Replacement(Anchor(node, Side.START), Anchor(node, Side.END), code)


def replace_with_atom(node: cst.BaseExpression, code: str) -> Replacement:
    """`code` that holds together anywhere, such as a call, instead of a node and the parentheses it may have."""
    return Replacement(Anchor(node, Side.START), Anchor(node, Side.END), code, parentheses=True)


def insert_after(node: Node, code: str) -> Replacement:
    """`code` directly after a node, on its line: `()` after `optimizer.step`."""
    return Replacement(Anchor(node, Side.END), Anchor(node, Side.END), code)


def wrap(node: Node, before: str, after: str) -> tuple[Replacement, Replacement]:
    """`before` and `after` around a node, which keeps its own text: `copy.deepcopy(` and `)`."""
    start, end = Anchor(node, Side.START), Anchor(node, Side.END)
    return Replacement(start, start, before), Replacement(end, end, after)


def unwrap(outer: Node, inner: Node) -> tuple[Edit, ...]:
    """A node instead of one that is around it, whose other parts go: `x` instead of `F.softmax(x, dim=1)`."""
    return (Unwrapping(outer, inner),)


def call_method(node: Node, code: str) -> tuple[Edit, ...]:
    """A method call on an expression, in parentheses if need be: `.detach()` makes `(a + b).detach()` of `a + b`."""
    return (insert_after(node, code),) if is_atom(node) else wrap(node, "(", f"){code}")


def is_atom(node: Node) -> bool:
    """Whether an expression holds together wherever it is put."""
    return isinstance(node, _ATOMS)


def add_argument(call: cst.Call, code: str) -> Replacement | Addition | None:
    """An argument after the last one of a call; None where `**` leaves no room."""
    if not call.args:
        return Replacement(Anchor(call.func, Side.END), Anchor(call, Side.END), f"({code})")
    last = call.args[-1]
    return Addition(last, code) if last.star != "**" else None


def set_argument(call: cst.Call, keyword: str, code: str, given: Node | None) -> Edit | None:
    """`keyword=code` in a call, in the place of what is `given` there already; None as for `add_argument`."""
    return replace(given, code) if given is not None else add_argument(call, f"{keyword}={code}")


def remove_argument(call: cst.Call, arg: cst.Arg) -> Replacement:
    """A call without one of its arguments."""
    index = call.args.index(arg)
    if index + 1 < len(call.args):
        return Replacement(Anchor(arg, Side.START), Anchor(call.args[index + 1], Side.START), "")
    if index:
        return Replacement(Anchor(call.args[index - 1], Side.END), Anchor(arg, Side.END), "")
    return Replacement(Anchor(call.func, Side.END), Anchor(call, Side.END), "()")


def insert_line_before(tree: Tree, node: Node, code: str) -> Insertion:
    """Lines before the statement of a node."""
    return Insertion(_statement(tree, node), Side.START, code)


def insert_line_after(tree: Tree, node: Node, code: str) -> Insertion:
    """Lines after the statement of a node."""
    return Insertion(_statement(tree, node), Side.END, code)


def remove_statement(tree: Tree, node: Node) -> Removal:
    """The statement of a node goes; where its block would be empty the fix is dropped."""
    return Removal(_statement(tree, node))


def _statement(tree: Tree, node: Node) -> Node:
    """The statement of a node; an entry of a block may be a line, which holds statements."""
    return tree.statement(node.body[0] if isinstance(node, cst.SimpleStatementLine) else node)


def move(tree: Tree, places: Places, node: Node, beside: Node, side: Side) -> tuple[Edit, ...]:
    """The statement of a node goes to before or after that of another one; empty if that may change more than order.

    Both stand on lines of their own in one block, and what moves is one line, with its comment.
    """
    line, other = tree.parent[tree.statement(node)], tree.parent[tree.statement(beside)]
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(other, cst.SimpleStatementLine):
        return ()
    if len(line.body) > 1 or len(other.body) > 1 or tree.parent[line] is not tree.parent[other]:
        return ()
    comment = places.behind(line.body[0]).strip()
    code = places.code(line.body[0]) + (f"  {comment}" if comment.startswith("#") else "")
    return () if "\n" in code else (Removal(line.body[0]), Insertion(other.body[0], side, code))
