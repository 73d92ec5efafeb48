"""The syntax tree of one file, indexed in one walk: parents, source order, and all nodes of a type.

A tree also answers for nodes of other files of the project, by asking the tree that each is in (`facts.program`).
"""

import ast
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from itertools import count
from typing import Any, TypeVar, cast, get_origin, overload
from weakref import proxy

import libcst as cst

from ta_lint.core.bounds import DEEPEST, too_deep

Node = cst.CSTNode
NodeT = TypeVar("NodeT", bound=cst.CSTNode)
_Reader = Callable[[Node], list[Node]]

FUNCTIONS = (cst.FunctionDef, cst.Lambda)
LOOPS = (cst.For, cst.While)
BLOCKS = (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)
_WITH_BODIES = frozenset({*FUNCTIONS, cst.ClassDef})
_STATEMENTS = frozenset(
    kind
    for kind in vars(cst).values()  # `issubclass` with abstract classes would take 12 ms
    if isinstance(kind, type) and {cst.BaseSmallStatement, cst.BaseCompoundStatement} & {*kind.__mro__}
)

# Punctuation and layout: most nodes of a libcst tree, and of no interest to checks. This includes operators, which are
# read as `node.operator`.
_LAYOUT = frozenset(
    "asynchronous colon comma default_indent default_newline dot encoding end equal first_colon footer header "
    "indent lbrace lbracket leading_lines lines_after_decorators lpar operator posonly_ind rbrace rbracket "
    "rpar second_colon semicolon separator star trailing_comma trailing_whitespace".split()
)


# The fields in source order, for types that declare them in another order.
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

_NO_NODE = frozenset({type(None), cst.MaybeSentinel})  # what a field for a node may hold instead
_PLAIN_TYPES = (str, bool, str | None)


def child_fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a type of node that hold child nodes, in source order."""
    if kind in _SOURCE_ORDER:
        return tuple(_SOURCE_ORDER[kind].split())
    return tuple(
        field.name
        for field in fields(kind)
        if field.name not in _LAYOUT and "whitespace" not in field.name and field.type not in _PLAIN_TYPES
    )


def _as_nodes(value: Any) -> Any:
    """The nodes in a field that may hold one, many or none."""
    kind = type(value)  # `isinstance` with an abstract class takes three times as long
    if kind is list or kind is tuple:
        return value
    return () if kind in _NO_NODE else (value,)


@cache
def _reader(kind: type[Node]) -> _Reader | None:
    """A function that lists the children of a node of this type; None if it has none."""
    types = {field.name: field.type for field in fields(kind)}
    parts = []
    for name in child_fields(kind):
        if isinstance(types[name], type):
            parts.append(f"node.{name}")
        elif get_origin(types[name]) is Sequence:
            parts.append(f"*node.{name}")
        else:
            parts.append(f"*as_nodes(node.{name})")
    if not parts:
        return None
    # compiled for each type, as this runs for every node of every file
    read: _Reader = eval(f"lambda node: [{', '.join(parts)}]", {"as_nodes": _as_nodes})
    return read


def children(node: Node) -> list[Node]:
    """The child nodes that carry meaning, in source order."""
    read = _reader(type(node))
    return read(node) if read is not None else []


class Parents:
    """The parent of each node of a tree except the root."""

    def __init__(self, tree: "Tree") -> None:
        self._nodes = tree.nodes
        self._above = tree.above
        self._number = tree.number
        self._tree: Tree = proxy(
            tree
        )  # a weak reference, so that the tree is freed without the garbage collector

    def __getitem__(self, node: Node) -> Node:
        above = self.get(node)
        if above is None:
            raise KeyError(node)
        return above

    @overload
    def get(self, node: Node) -> Node | None: ...
    @overload
    def get(self, node: Node, default: Node) -> Node: ...
    def get(self, node: Node, default: Node | None = None) -> Node | None:
        number = self._number.get(id(node))
        if number:
            return cast(Node, self._nodes[self._above[number]])
        if number is None and (other := self._tree.elsewhere(node)) is not None:
            return next(other.ancestors(node), default)
        return default


def _nowhere(_: Node) -> "Tree | None":
    """Where a node of another file is, for a tree that stands alone."""
    return None


_ORDERS = count(step=1 << 32)  # of two trees, whichever was made first comes first


class _Regions:
    """Intervals of node numbers, disjoint or within each other, each with the node that owns it."""

    def __init__(self, intervals: Iterable[tuple[int, int, Any]]) -> None:
        """Each interval is its first number, its last, and its owner."""
        self._starts, self._owners = [0], [None]  # an owner for the numbers from each start to the next
        open_: list[tuple[int, Any]] = []
        for first, last, owner in sorted(intervals, key=lambda interval: interval[0]):
            self._close(open_, first)
            self._starts.append(first)
            self._owners.append(owner)
            open_.append((last, owner))
        self._close(open_, sys.maxsize)

    def _close(self, open_: list[tuple[int, Any]], before: int) -> None:
        while open_ and open_[-1][0] < before:
            self._starts.append(open_.pop()[0] + 1)
            self._owners.append(open_[-1][1] if open_ else None)

    def at(self, number: int) -> Any:
        """The owner of the innermost interval that a number is in; None if it is in none."""
        return self._owners[bisect_right(self._starts, number) - 1]


class Tree:
    """An index over a parsed file.

    Nodes are numbered in source order, a parent before its children, so that a subtree is an interval of numbers and
    `within` takes two bisections.

    Raises:
        Unreadable: the file is nested deeper than checks can follow.
    """

    def __init__(self, root: cst.Module) -> None:
        self.root = root
        self.nodes: list[Any] = []
        self.above: list[int] = []
        """The number of the parent of each node."""
        self._last: list[int] = []  # the number of the last node below each
        self._of_type: dict[type[Node], list[int]] = defaultdict(list)
        try:
            self._walk()
        except RecursionError as error:
            raise too_deep() from error
        self._check_depth()
        self.number: dict[int, int] = dict(zip(map(id, self.nodes), range(len(self.nodes)), strict=True))
        """The number of each node by its `id`: hashing nodes runs Python code and would take as long as the walk."""
        self.parent = Parents(self)
        self._below: dict[tuple[type[Node], ...], _Regions] = {}
        self._of_home: dict[type[Node], dict[int, list[int]]] = {}
        self._order = next(_ORDERS)
        self.elsewhere: Callable[[Node], Tree | None] = _nowhere
        """The tree of another file that a node is in; None if it is in no file."""

    def _walk(self) -> None:
        nodes, above, last, of_type = self.nodes, self.above, self._last, self._of_type
        readers: dict[type[Node], tuple[list[int], _Reader | None]] = {}

        def visit(node: Node, number: int, read: _Reader, visit: Any) -> None:
            # passed to itself, as a closure over itself would be a reference cycle
            for child in read(node):
                kind = type(child)
                known = readers.get(kind)
                if known is None:
                    known = readers[kind] = of_type[kind], _reader(kind)
                numbers, read_child = known
                child_number = len(nodes)
                numbers.append(child_number)
                nodes.append(child)
                above.append(number)
                last.append(child_number)
                if read_child is not None:
                    visit(child, child_number, read_child, visit)
                    last[child_number] = len(nodes) - 1

        nodes.append(self.root)
        above.append(0)
        of_type[type(self.root)].append(0)
        last.append(0)
        visit(self.root, 0, children, visit)
        last[0] = len(nodes) - 1

    def _check_depth(self) -> None:
        if all(self._last[number] - number <= DEEPEST for number in self._below_the_root()):
            return  # no statement has as many nodes
        levels = [0]
        for above in self.above[1:]:
            levels.append(levels[above] + 1)
        if max(levels) > DEEPEST:
            raise too_deep(max(levels))

    def _below_the_root(self) -> Iterator[int]:
        number = 1
        while number < len(self.nodes):
            yield number
            number = self._last[number] + 1

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
        first = self.number.get(id(node))
        if first is None:
            return self._tree_of(node).within(node, *kinds)
        last = self._last[first]
        found: list[int] = []
        for kind in kinds:
            numbers = self._of_type.get(kind, [])
            found += numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]
        if len(kinds) > 1:
            found.sort()
        return [self.nodes[number] for number in found]

    def later(self, node: Node, after: Node, kind: type[NodeT]) -> Iterator[NodeT]:
        """The nodes of a type at or below `node` that begin after another node of the file, in source order, as they are asked for."""
        tree = self._tree_of(node)
        numbers = tree._of_type.get(kind, [])
        first, last = (
            max(tree.number[id(node)] - 1, tree.number[id(after)]),
            tree._last[tree.number[id(node)]],
        )
        for place in range(bisect_right(numbers, first), bisect_right(numbers, last)):
            yield tree.nodes[numbers[place]]

    def _tree_of(self, node: Node) -> "Tree":
        """The tree that a node is in.

        Raises:
            KeyError: it is in no tree, as a node that a check has made.
        """
        if id(node) in self.number:
            return self
        other = self.elsewhere(node)
        if other is None:
            raise KeyError(node)
        return other

    def interval(self, node: Node) -> tuple[int, int]:
        """The numbers, in its own tree, of a node and of the last node below it."""
        tree = self._tree_of(node)
        number = tree.number[id(node)]
        return number, tree._last[number]

    def among(self, numbers: Sequence[int], node: Node) -> list[Any]:
        """The nodes with these ascending numbers that are `node`, which is in this very tree, or below it."""
        first = self.number[id(node)]
        found = numbers[bisect_left(numbers, first) : bisect_right(numbers, self._last[first])]
        return [self.nodes[number] for number in found]

    @overload
    def own(self, node: Node, kind: type[NodeT], /) -> list[NodeT]: ...
    @overload
    def own(self, node: Node, *kinds: type[Node]) -> list[Any]: ...
    def own(self, node: Node, *kinds: type[Node]) -> list[Any]:
        """As `within`, without nodes inside functions or classes defined below `node`."""
        first = self.number.get(id(node))
        if first is None:
            return self._tree_of(node).own(node, *kinds)
        last = self._last[first]
        is_home = type(node) in _WITH_BODIES
        home = id(node if is_home else self.home(node))
        found = [first] if is_home and type(node) in kinds else []
        for kind in kinds:
            numbers = self._at_home(kind).get(home, [])
            found += numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]
        if len(kinds) > 1:
            found.sort()
        return [self.nodes[number] for number in found]

    def _at_home(self, kind: type[Node]) -> dict[int, list[int]]:
        """The numbers of the nodes of a type, by the `id` of their home."""
        known = self._of_home.get(kind)
        if known is None:
            known = self._of_home[kind] = {}
            for number in self._of_type.get(kind, ()):
                known.setdefault(id(self._homes.at(number) or self.root), []).append(number)
        return known

    def home(self, node: Node) -> Node:
        """The function, lambda, class or module whose body holds `node` (defaults and decorators are outside the body)."""
        number = self.number.get(id(node))
        if number is None and (other := self.elsewhere(node)) is not None:
            return other.home(node)
        found: Node | None = self._homes.at(number or 0)
        return found if found is not None else self.root

    @cached_property
    def _homes(self) -> "_Regions":
        owners: list[Any] = self.all(*FUNCTIONS, cst.ClassDef)
        return _Regions(
            (self.number[id(owner.body)], self._last[self.number[id(owner.body)]], owner) for owner in owners
        )

    def subtree(self, node: Node) -> list[Any]:
        """A node and all nodes below it, in source order."""
        first = self.number.get(id(node))
        if first is None:
            return self._tree_of(node).subtree(node)
        return self.nodes[first : self._last[first] + 1]

    def order(self, node: Node) -> int:
        """A number that no other node has, and that says which of two nodes of a file comes first in the source."""
        number = self.number.get(id(node))
        return self._order + number if number is not None else self._tree_of(node).order(node)

    def before(self, first: Node, second: Node) -> bool:
        """Whether `first` starts before `second` in the same file."""
        number, other = self.number.get(id(first)), self.number.get(id(second))
        if number is not None and other is not None:
            return number < other
        tree = self._tree_of(first)
        return tree is not self and tree is self._tree_of(second) and tree.before(first, second)

    def has(self, node: Node) -> bool:
        """Whether a node is in this tree."""
        return id(node) in self.number

    def contains(self, outer: Node, inner: Node) -> bool:
        """Whether `inner` is `outer` or below it."""
        number, below = self.number.get(id(outer)), self.number.get(id(inner))
        if number is not None and below is not None:
            return number <= below <= self._last[number]
        tree = self._tree_of(outer)
        return tree is not self and tree is self._tree_of(inner) and tree.contains(outer, inner)

    def ancestors(self, node: Node) -> Iterator[Node]:
        """The nodes above `node`, the nearest first."""
        nodes, above = self.nodes, self.above
        number = self.number.get(id(node))
        if number is None:
            other = self.elsewhere(node)
            if other is not None:
                yield from other.ancestors(node)
            return
        while number:
            number = above[number]
            yield nodes[number]

    def root_of(self, node: Node) -> cst.Module:
        """The root of the tree that a node is in."""
        return self._tree_of(node).root

    def is_at_top(self, node: Node) -> bool:
        """Whether a node is outside of all functions and classes."""
        return isinstance(self.home(node), cst.Module)

    def top(self, node: Node) -> Any:
        """The top-level statement that contains a node below the root."""
        tree = self._tree_of(node)
        return tree.nodes[tree._tops[bisect_right(tree._tops, tree.number[id(node)]) - 1]]

    @cached_property
    def _tops(self) -> list[int]:
        return list(self._below_the_root())

    def enclosing(self, node: Node, *kinds: type[NodeT]) -> NodeT | None:
        """The nearest node of these exact types strictly above `node`."""
        number = self.number.get(id(node))
        if number is None and (other := self.elsewhere(node)) is not None:
            return other.enclosing(node, *kinds)
        regions = self._below.get(kinds)
        if regions is None:
            numbers = ((self.number[id(owner)], owner) for owner in self.all(*kinds))
            regions = _Regions((first + 1, self._last[first], owner) for first, owner in numbers)
            self._below[kinds] = regions
        found: NodeT | None = regions.at(number or 0)
        return found

    def statement(self, node: Node) -> Node:
        """The statement that contains `node`: a small statement, or the compound one with `node` in its header."""
        if type(node) in _STATEMENTS:
            return node
        number = self.number.get(id(node))
        if number is None and (other := self.elsewhere(node)) is not None:
            return other.statement(node)
        return self._statements.at(number or 0) or self.root

    @cached_property
    def _statements(self) -> "_Regions":
        kinds = [kind for kind in self._of_type if kind in _STATEMENTS]
        return _Regions(
            (number, self._last[number], self.nodes[number])
            for kind in kinds
            for number in self._of_type[kind]
        )

    def apart(self, first: Node, second: Node) -> bool:
        """Whether two nodes are in branches of a condition that exclude each other."""
        one, other = self.number.get(id(first)), self.number.get(id(second))
        if one is None or other is None:
            tree = self._tree_of(second)
            return tree is not self and tree is self._tree_of(first) and tree.apart(first, second)
        around = other
        while not around <= one <= self._last[around]:  # up to the first node that contains both
            around = self.above[around]
            if type(self.nodes[around]) in (cst.FunctionDef, cst.ClassDef):
                return False
        both: Any = self.nodes[around]
        if type(both) not in (cst.If, cst.IfExp) or both.orelse is None:
            return False
        ways = both.body, both.orelse
        return any(
            self.contains(here, first) and self.contains(there, second)
            for here, there in (ways, reversed(ways))
        )

    def conditions(self, node: Node) -> dict[str, bool]:
        """The variables that have to be true, or false, for a node to be reached in its function: `if training:`."""
        found: dict[str, bool] = {}
        for above in self.ancestors(node):
            if isinstance(above, cst.FunctionDef):
                break
            if isinstance(above, (cst.If, cst.IfExp)) and not self.contains(above.test, node):
                test, outcome = above.test, self.contains(above.body, node)
                while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                    test, outcome = test.expression, not outcome
                if (variable := dotted(test)) is not None:
                    found.setdefault(variable, outcome)
        return found

    def block(self, node: Node) -> Node:
        """The statement list that contains the statement of `node`."""
        for above in self.ancestors(self.statement(node)):
            if isinstance(above, BLOCKS):
                return above
        return self.root

    def place(self, nodes: Sequence[Node], node: Node) -> int:
        """The place of a node among nodes in source order that hold it, found by their numbers."""
        return bisect_left(nodes, self.order(node), key=self.order)

    def preceding(self, node: Node) -> Iterator[Node]:
        """What always runs before the statement of `node` in the same iteration or call, the nearest first.

        Yields the statements before it in its block and in the blocks around it, up to a loop or function. The statements
        of a `with` come one by one, as they always run; other compound statements come whole. Between the blocks come
        the enclosing `if` conditions and `with` items.
        """
        child = self.statement(node)
        above = self.parent.get(child)
        while above is not None:
            if isinstance(above, (cst.SimpleStatementLine, *BLOCKS)):
                for place in reversed(range(self.place(above.body, child))):
                    yield from _flattened(above.body[place])
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

        The iterable and the `else` of a loop run once and are not in the loop.
        """
        tree = self._tree_of(node) if id(node) not in self.number else self
        found: list[cst.For | cst.While] = []
        around = tree._passes.at(tree.number[id(node)])
        while type(around) in LOOPS:
            found.append(around)
            around = tree._passes.at(tree.number[id(around)])
        return found

    @cached_property
    def _passes(self) -> "_Regions":
        """What runs again in each pass of a loop, and the functions and classes in which that ends."""
        regions = [(*self.interval(loop.body), loop) for loop in self.all(*LOOPS)]
        regions += [(*self.interval(loop.test), loop) for loop in self.all(cst.While)]
        for owner in self.all(*FUNCTIONS, cst.ClassDef):
            first, last = self.interval(owner)
            regions.append((first + 1, last, owner))
        return _Regions(regions)

    def is_left(self, loop: cst.For | cst.While, kind: type[cst.Break | cst.Continue]) -> bool:
        """Whether a pass of a loop may end early by a `break`, or by a `continue`."""
        tree = self._tree_of(loop)
        return id(loop) in tree._left[kind]

    @cached_property
    def _left(self) -> dict[type[Node], set[int]]:
        return {
            kind: {id(loop) for leave in self.all(kind) for loop in self.loops(leave)[:1]}
            for kind in (cst.Break, cst.Continue)
        }

    def alternative(self, number: int) -> Any:
        """The innermost condition whose `else` holds the node with this number, in its function; None if there is none."""
        around = self._alternatives.at(number)
        return around if type(around) not in (cst.FunctionDef, cst.ClassDef) else None

    @cached_property
    def _alternatives(self) -> "_Regions":
        regions = [
            (*self.interval(choice.orelse), choice)
            for choice in self.all(cst.If, cst.IfExp)
            if choice.orelse is not None
        ]
        for owner in self.all(cst.FunctionDef, cst.ClassDef):
            first, last = self.interval(owner)
            regions.append((first + 1, last, owner))
        return _Regions(regions)


def _flattened(statement: Node) -> Iterator[Node]:
    """The small statements of a line, or those in a `with`, the last first; any other statement as it is."""
    if isinstance(statement, cst.SimpleStatementLine):
        yield from reversed(statement.body)
    elif isinstance(statement, cst.With):
        for inner in reversed(statement.body.body):
            yield from _flattened(inner)
        yield from reversed(statement.items)
    else:
        yield statement


def dotted(node: Node) -> str | None:
    """`self.model.fc` for a chain of names and attributes, None for anything else."""
    parts: list[str] = []
    current: Any = node
    while type(current) is cst.Attribute:  # `isinstance` with an abstract class takes three times as long
        parts.append(current.attr.value)
        current = current.value
    if type(current) is not cst.Name:
        return None
    parts.append(current.value)
    return ".".join(reversed(parts))


def is_name(node: Node | None, name: str) -> bool:
    """Whether an expression is exactly this name: `self`, `None`, `True`."""
    return type(node) is cst.Name and node.value == name


@overload
def evaluated(literal: cst.Integer) -> int: ...
@overload
def evaluated(literal: cst.Float) -> float: ...
@overload
def evaluated(literal: cst.SimpleString) -> str | bytes: ...
@overload
def evaluated(literal: cst.ConcatenatedString) -> str | bytes | None: ...
def evaluated(literal: cst.Integer | cst.Float | cst.SimpleString | cst.ConcatenatedString) -> Any:
    """The value of a number or a string, as libcst's `evaluated_value` has it; None if a part of it is an f-string.

    libcst asks `ast.literal_eval`, which leaves functions in reference cycles; they stay while the collector is paused.
    """
    if isinstance(literal, cst.Integer):
        return int(literal.value, 0)
    if isinstance(literal, cst.Float):
        return float(literal.value)
    if isinstance(literal, cst.SimpleString):
        return _of_string(literal.value)
    sides = literal.left, literal.right
    left, right = (None if isinstance(side, cst.FormattedString) else evaluated(side) for side in sides)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    return left + right if isinstance(left, bytes) and isinstance(right, bytes) else None


def _of_string(text: str) -> str | bytes:
    if text[0] not in "\"'" or "\\" in text or "\r" in text:
        return _unescaped(text)
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes]


@lru_cache(256)
def _unescaped(text: str) -> str | bytes:
    found: str | bytes = ast.literal_eval(text)
    return found


def literal_text(node: Node | None) -> str | None:
    """The text of a string literal; None for anything else, including bytes."""
    value = evaluated(node) if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def literal_key(node: Node | None) -> str | None:
    """`x` for `d["x"]`, None for anything else."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return literal_text(index.value) if isinstance(index, cst.Index) else None


def attribute_of_self(node: Node | None) -> str | None:
    """`x` for `self.x`, None for anything else."""
    return node.attr.value if type(node) is cst.Attribute and is_name(node.value, "self") else None


def argument(call: cst.Call, keyword: str, position: int | None = None) -> cst.BaseExpression | None:
    """The value that a call passes by this keyword or position (from 0); None if it passes none."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg.value
    if position is not None and position < len(call.args):
        head = call.args[: position + 1]
        if all(arg.keyword is None and not arg.star for arg in head):
            return head[-1].value
    return None


def spreads(call: cst.Call) -> bool:
    """Whether a call passes `*args` or `**kwargs`, so that it may set any parameter."""
    return any(arg.star for arg in call.args)


def whole_index(node: cst.Subscript) -> int | None:
    """The integer literal in a subscript, including a minus sign; None for anything else."""
    inner = node.slice[0].slice
    value = inner.value if len(node.slice) == 1 and isinstance(inner, cst.Index) else None
    negative = isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus)
    literal = value.expression if isinstance(value, cst.UnaryOperation) and negative else value
    if not isinstance(literal, cst.Integer):
        return None
    return -evaluated(literal) if negative else evaluated(literal)
