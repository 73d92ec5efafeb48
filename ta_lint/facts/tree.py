"""The syntax tree of one file, walked once: parents, source order, and every node of a type."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, overload

import libcst as cst

Node = cst.CSTNode
NodeT = TypeVar("NodeT", bound=cst.CSTNode)

FUNCTIONS = (cst.FunctionDef, cst.Lambda)
LOOPS = (cst.For, cst.While)
BLOCKS = (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)

# Punctuation and layout: most of a libcst tree by count, and nothing a check could ask about. Operators are among them:
# read `node.operator`.
_LAYOUT = frozenset(
    "asynchronous colon comma default_indent default_newline dot encoding end equal first_colon footer header "
    "indent lbrace lbracket leading_lines lines_after_decorators lpar operator posonly_ind rbrace rbracket "
    "rpar second_colon semicolon separator star trailing_comma trailing_whitespace".split()
)


# Where libcst declares the fields of a node in another order than they stand in the source.
_SOURCE_ORDER: dict[type[Node], str] = {
    cst.Arg: "keyword value",
    cst.ClassDef: "decorators name type_parameters bases keywords body",
    cst.ExceptHandler: "type name body",
    cst.ExceptStarHandler: "type name body",
    cst.FunctionDef: "decorators name type_parameters params returns body",
    cst.IfExp: "body test orelse",
    cst.ImportFrom: "relative module names",
    cst.MatchCase: "pattern guard body",
    cst.Parameters: "posonly_params params star_arg kwonly_params star_kwarg",
    cst.TypeAlias: "name type_parameters value",
}

_NO_NODE = frozenset({type(None), cst.MaybeSentinel})  # what else a field for a node may hold
_WORDS = (str, bool, str | None)


def child_fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a type of node that hold child nodes, in source order."""
    if kind in _SOURCE_ORDER:
        return tuple(_SOURCE_ORDER[kind].split())
    return tuple(
        field.name
        for field in fields(kind)
        if field.name not in _LAYOUT and "whitespace" not in field.name and field.type not in _WORDS
    )


@cache
def _values(kind: type[Node]) -> Callable[[Node], tuple[Any, ...]]:
    """What reads all fields at once that hold nodes."""
    names = child_fields(kind)
    if not names:
        return lambda node: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda node: (read(node),)


def children(node: Node) -> list[Node]:
    """The child nodes that carry meaning, in source order."""
    found: list[Node] = []
    for value in _values(type(node))(node):
        kind = type(value)  # asking an abstract class, as isinstance would, takes three times as long
        if kind is list or kind is tuple:
            found += value
        elif kind not in _NO_NODE:
            found.append(value)
    return found


class Tree:
    """An index over a parsed file.

    Nodes are numbered in source order, a parent before its children, so that a subtree is an interval and
    `within` is two bisections.
    """

    def __init__(self, root: cst.Module) -> None:
        self.root = root
        self.parent: dict[Node, Node] = {}
        self._number: dict[Node, int] = {}
        self._last: list[int] = []
        self._of_type: dict[type[Node], list[Node]] = defaultdict(list)
        self._numbers_of_type: dict[type[Node], list[int]] = {}
        self._function: dict[Node, Node] = {}
        self._walk()

    def _walk(self) -> None:
        numbers, parents, of_type = self._number, self.parent, self._of_type
        above: list[int] = []  # the number of each node's parent
        stack: list[tuple[Node, int]] = [(self.root, 0)]
        while stack:
            node, parent = stack.pop()
            number = len(above)
            numbers[node] = number
            above.append(parent)
            of_type[type(node)].append(node)
            below = children(node)
            if below:
                for child in reversed(below):
                    parents[child] = node
                    stack.append((child, number))
        last = list(range(len(above)))
        for number in range(len(above) - 1, 0, -1):
            if last[above[number]] == above[number]:  # the last of its children
                last[above[number]] = last[number]
        self._last = last

    @overload
    def all(self, kind: type[NodeT], /) -> list[NodeT]: ...
    @overload
    def all(self, *kinds: type[Node]) -> list[Any]: ...
    def all(self, *kinds: type[Node]) -> list[Any]:
        """Every node of these exact types, in source order."""
        return self.within(self.root, *kinds)

    @overload
    def within(self, node: Node, kind: type[NodeT], /) -> list[NodeT]: ...
    @overload
    def within(self, node: Node, *kinds: type[Node]) -> list[Any]: ...
    def within(self, node: Node, *kinds: type[Node]) -> list[Any]:
        """The nodes of these exact types at or below `node`, in source order."""
        first = self._number[node]
        last = self._last[first]
        found: list[Node] = []
        for kind in kinds:
            nodes = self._of_type.get(kind)
            if nodes is None:
                continue
            numbers = self._numbers_of_type.get(kind)
            if numbers is None:
                numbers = self._numbers_of_type[kind] = [self._number[node] for node in nodes]
            found += nodes[bisect_left(numbers, first) : bisect_right(numbers, last)]
        if len(kinds) > 1:
            found.sort(key=self._number.__getitem__)
        return found

    @overload
    def own(self, node: Node, kind: type[NodeT], /) -> list[NodeT]: ...
    @overload
    def own(self, node: Node, *kinds: type[Node]) -> list[Any]: ...
    def own(self, node: Node, *kinds: type[Node]) -> list[Any]:
        """As `within`, without what stands in a function or class defined below `node`."""
        home = node if isinstance(node, (*FUNCTIONS, cst.ClassDef)) else self.home(node)
        return [found for found in self.within(node, *kinds) if found is node or self.home(found) is home]

    def home(self, node: Node) -> Node:
        """The function, lambda, class or module whose body holds `node` (its defaults and decorators do not)."""
        found = self._function.get(node)
        if found is None:
            child, above = node, self.parent.get(node)
            while above is not None and not (
                isinstance(above, (*FUNCTIONS, cst.ClassDef)) and child is above.body
            ):
                child, above = above, self.parent.get(above)
            found = above if above is not None else self.root
            self._function[node] = found
        return found

    def order(self, node: Node) -> int:
        """The number of a node in source order."""
        return self._number[node]

    def before(self, first: Node, second: Node) -> bool:
        """Whether `first` starts before `second` in the source."""
        return self._number[first] < self._number[second]

    def contains(self, outer: Node, inner: Node) -> bool:
        """Whether `inner` is `outer` or stands below it."""
        number = self._number[outer]
        return number <= self._number[inner] <= self._last[number]

    def ancestors(self, node: Node) -> Iterator[Node]:
        """The nodes above `node`, the nearest first."""
        above = self.parent.get(node)
        while above is not None:
            yield above
            above = self.parent.get(above)

    def enclosing(self, node: Node, *kinds: type[NodeT]) -> NodeT | None:
        """The nearest node of these types strictly above `node`."""
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), None)

    def statement(self, node: Node) -> Node:
        """The statement that holds `node`: a small statement, or the compound one whose header it stands in."""
        for above in (node, *self.ancestors(node)):
            if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return above
        return self.root

    def apart(self, first: Node, second: Node) -> bool:
        """Whether two nodes stand in branches of a condition that exclude each other."""
        for above in self.ancestors(second):
            if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
                return False
            if isinstance(above, (cst.If, cst.IfExp)) and above.orelse is not None:
                body, orelse = above.body, above.orelse
                if self.contains(body, second) and self.contains(orelse, first):
                    return True
                if self.contains(orelse, second) and self.contains(body, first):
                    return True
        return False

    def block(self, node: Node) -> Node:
        """The statement list that holds the statement of `node`."""
        for above in self.ancestors(self.statement(node)):
            if isinstance(above, BLOCKS):
                return above
        return self.root

    def preceding(self, node: Node) -> Iterator[Node]:
        """What runs before the statement of `node`, whenever that runs, in the same pass: the nearest first.

        The statements before it in its list, and in the lists around it up to a loop or function. A `with` is opened:
        its statements are always run. Other compound statements come whole. On the way out come the conditions and
        contexts that were passed.
        """
        child = self.statement(node)
        above = self.parent.get(child)
        while above is not None:
            if isinstance(above, (cst.SimpleStatementLine, *BLOCKS)):
                for earlier in reversed(above.body[: above.body.index(child)]):
                    yield from _opened(earlier)
            elif isinstance(above, cst.With):
                yield from reversed(above.items)
            elif isinstance(above, cst.If):
                yield above.test
            elif not (isinstance(above, cst.Else) and isinstance(self.parent[above], cst.If)) and not (
                isinstance(above, cst.Try) and child is above.body
            ):
                return
            child, above = above, self.parent.get(above)

    def loops(self, node: Node) -> list[cst.For | cst.While]:
        """The loops around `node` within its own function, the innermost first.

        What stands in a loop's iterable or in its `else` runs once and is not in the loop.
        """
        found: list[cst.For | cst.While] = []
        child = node
        for above in self.ancestors(node):
            if isinstance(above, (*FUNCTIONS, cst.ClassDef)):
                break
            if isinstance(above, LOOPS) and (child is above.body or child is getattr(above, "test", None)):
                found.append(above)
            child = above
        return found


def _opened(statement: Node) -> Iterator[Node]:
    """The small statements of a line and those in a `with`, the last first; another statement is itself."""
    if isinstance(statement, cst.SimpleStatementLine):
        yield from reversed(statement.body)
    elif isinstance(statement, cst.With):
        for inner in reversed(statement.body.body):
            yield from _opened(inner)
        yield from reversed(statement.items)
    else:
        yield statement


def dotted(node: Node) -> str | None:
    """`self.model.fc` for a chain of names and attributes, None for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def is_name(node: Node | None, name: str) -> bool:
    """Whether an expression is this very name: `self`, `None`, `True`."""
    return isinstance(node, cst.Name) and node.value == name


def literal_text(node: Node | None) -> str | None:
    """The text of a string literal; None for anything else, bytes among it."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def literal_key(node: Node | None) -> str | None:
    """`x` for `d["x"]`, None for anything else."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return literal_text(index.value) if isinstance(index, cst.Index) else None


def attribute_of_self(node: Node | None) -> str | None:
    """`x` for `self.x`, None for anything else."""
    return node.attr.value if isinstance(node, cst.Attribute) and is_name(node.value, "self") else None


def argument(call: cst.Call, keyword: str, position: int | None = None) -> cst.BaseExpression | None:
    """The value a call gives to a parameter, by keyword or by position (from 0); None if not given there."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg.value
    if position is not None and position < len(call.args):
        head = call.args[: position + 1]
        if all(arg.keyword is None and not arg.star for arg in head):
            return head[-1].value
    return None


def spreads(call: cst.Call) -> bool:
    """Whether a call passes `*args` or `**kwargs`, so that any parameter may be given."""
    return any(arg.star for arg in call.args)
