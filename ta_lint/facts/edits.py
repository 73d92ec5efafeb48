"""Fixes as edits of nodes: what a check proposes; `ta_lint.fixing` turns them into edits of text.

What no edit names stays as it is, to the byte: an edit puts code in the place of a node, beside it, or on lines of its
own before or after a statement.
"""

from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from ta_lint.facts.tree import Node, Tree


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
    """`code` in the place of what stands from `start` to `end`; between two equal places it is inserted."""

    start: Anchor
    end: Anchor
    code: str


@dataclass(frozen=True, eq=False)
class Insertion:
    """`code`, unindented, on lines of its own before or after a statement, indented as the statement is.

    After a compound statement is after its whole body.
    """

    statement: Node
    side: Side
    code: str


@dataclass(frozen=True, eq=False)
class Removal:
    """The lines of a statement are dropped, its own trailing comment included; what stands around it stays."""

    statement: Node


Edit = Replacement | Insertion | Removal


@dataclass(frozen=True, eq=False)
class Fix:
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
    """`code` instead of a node."""
    return Replacement(Anchor(node, Side.START), Anchor(node, Side.END), code)


def insert_after(node: Node, code: str) -> Replacement:
    """`code` directly after a node, on its line: `()` after `optimizer.step`."""
    return Replacement(Anchor(node, Side.END), Anchor(node, Side.END), code)


def wrap(node: Node, before: str, after: str) -> tuple[Replacement, Replacement]:
    """`before` and `after` around a node, which keeps its own text: `copy.deepcopy(` and `)`."""
    start, end = Anchor(node, Side.START), Anchor(node, Side.END)
    return Replacement(start, start, before), Replacement(end, end, after)


def unwrap(outer: Node, inner: Node) -> tuple[Replacement, Replacement]:
    """A node instead of one that is around it, whose other parts go: `x` instead of `F.softmax(x, dim=1)`."""
    return (
        Replacement(Anchor(outer, Side.START), Anchor(inner, Side.START), ""),
        Replacement(Anchor(inner, Side.END), Anchor(outer, Side.END), ""),
    )


def add_argument(call: cst.Call, code: str) -> Replacement | None:
    """An argument after the last one of a call; None where a bare generator expression or `**` leaves no room."""
    if not call.args:
        return Replacement(Anchor(call.func, Side.END), Anchor(call, Side.END), f"({code})")
    last = call.args[-1]
    if last.star == "**" or (isinstance(last.value, cst.GeneratorExp) and not last.value.lpar):
        return None
    return insert_after(last, f", {code}")


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
    return Insertion(tree.statement(node), Side.START, code)


def insert_line_after(tree: Tree, node: Node, code: str) -> Insertion:
    """Lines after the statement of a node."""
    return Insertion(tree.statement(node), Side.END, code)


def remove_statement(tree: Tree, node: Node) -> Removal:
    """The statement of a node goes; where its block would be empty the fix is dropped."""
    return Removal(tree.statement(node))
