"""What torch has removed, deprecated or never published, and where a file uses it."""

from collections.abc import Iterator
from functools import cache, cached_property
from itertools import chain
from typing import Literal, NamedTuple

import libcst as cst

from ta_lint.facts.torch.fallbacks import Fallbacks
from ta_lint.facts.torch.symbols import ROWS, Row
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree

_RECEIVERS = {"Tensor": (Kind.TENSOR, Kind.PARAMETER), "Module": (Kind.MODULE, Kind.CRITERION)}
_PLACES = {"Tensor": "torch", "Module": "torch.nn"}

# Calls that are given a class to compare with, not to use.
_COMPARES = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "setattr", "type", "id", "register"})


class Use(NamedTuple):
    """A place where a file uses a symbol: an import, a name or a call of a method; `name` is what is used there."""

    node: Node
    row: Row
    name: str

    @property
    def instead(self) -> str:
        """What the message says takes its place: of a name in a module that moved, that name in the new one."""
        last = self.name.rpartition(".")[2]
        return f"`{self.row.new}.{last}`" if last in self.row.names else self.row.said


@cache
def rows() -> dict[str, Row]:
    """The data, by symbol."""
    return {row.symbol: row for row in ROWS}


def release(version: str) -> tuple[int, int]:
    """`(1, 13)` for `1.13`."""
    major, minor = version.split(".")
    return int(major), int(minor)


def keywords(status: Literal["removed", "deprecated", "private"]) -> tuple[str, ...]:
    """The last names of the symbols of this status: a file that uses one holds its name."""
    return tuple(sorted({row.last for row in rows().values() if getattr(row, status)}))


class Api:
    """Where a file uses the symbols of the data, deliberate fallbacks for other versions of torch aside."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, fallbacks: Fallbacks) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._fallbacks = fallbacks

    @cached_property
    def uses(self) -> list[Use]:
        """In source order. What is imported by name is used where it is imported, and there alone."""
        found = [
            use
            for use in chain(self._imports(), self._references(), self._method_calls())
            if not self._is_deliberate(use.node) and use.name not in self._patched
        ]
        return sorted(found, key=lambda use: self._tree.order(use.node))

    def _imports(self) -> Iterator[Use]:
        """What is imported by name; of a module whose names are all meant, the statement, once."""
        statements: set[Node] = set()
        for path, alias in self._names.imports():
            row = self._row(path)
            if row is None or (
                row.private and row.symbol != path and path.rpartition(".")[2] not in row.names
            ):
                continue  # a private name in a private module has no public one
            statement = self._tree.parent[alias]
            if row.symbol == path or not isinstance(statement, cst.ImportFrom):
                yield Use(alias, row, path)
            elif statement not in statements:
                statements.add(statement)
                yield Use(statement, row, path)

    def _references(self) -> Iterator[Use]:
        imported = {use.row.symbol for use in self._imports() if use.row.kind == "module"}
        last = {row.last for row in rows().values() if row.kind != "method"}
        for node in self._tree.all(cst.Attribute):
            if node.attr.value not in last or self._is_part(node):
                continue
            row = self._symbol(node)
            if row is None or row.symbol in imported or not self._is_used(node, row):
                continue
            yield Use(node, row, row.symbol)

    def _is_part(self, node: cst.Attribute) -> bool:
        """Whether a name stands in an import, or is the module of a symbol that has a row of its own."""
        if isinstance(self._tree.statement(node), (cst.Import, cst.ImportFrom)):
            return True
        above = self._tree.parent[node]
        return isinstance(above, cst.Attribute) and self._symbol(above) is not None

    def _method_calls(self) -> Iterator[Use]:
        methods = {row.last for row in rows().values() if row.kind == "method"}
        for call in self._tree.all(cst.Call):
            if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in methods:
                continue
            for owner, kinds in _RECEIVERS.items():
                row = rows().get(f"{owner}.{call.func.attr.value}")
                if row is not None and self._is(call.func.value, kinds):
                    yield Use(call, row, f"{_PLACES[owner]}.{row.symbol}")

    def _is(self, node: Node, kinds: tuple[Kind, ...]) -> bool:
        """Whether a value is of a kind; what arithmetic gives, only if all that goes into it is: not `tensor * operator`."""
        origin = self._kinds.origin(node)
        if isinstance(origin, cst.BinaryOperation):
            return self._is(origin.left, kinds) and self._is(origin.right, kinds)
        return isinstance(origin, (cst.Integer, cst.Float)) or self._kinds.kind(node) in kinds

    def _symbol(self, node: cst.Attribute) -> Row | None:
        """The row of what an expression names, by the path that is written or by the one that is usual."""
        paths = (self._names.written(node), self._names.qualified(node))
        found = (rows().get(path) for path in paths if path is not None)
        return next((row for row in found if row is not None and row.kind != "method"), None)

    def _row(self, path: str) -> Row | None:
        """The row of what is imported: its own, or that of the module it is in."""
        row = rows().get(path)
        while row is None and "." in path:
            path = path.rpartition(".")[0]
            row = found if (found := rows().get(path)) is not None and found.kind == "module" else None
        return row

    def _is_used(self, node: cst.Attribute, row: Row) -> bool:
        """Whether a name is used where it stands, and not compared, annotated with, or kept in a table."""
        above = self._tree.parent[node]
        if row.kind in ("attribute", "module"):
            return not isinstance(above, (cst.AssignTarget, cst.Del))
        if isinstance(above, cst.Call):
            return above.func is node
        if isinstance(above, cst.Arg):
            call = self._tree.parent[above]
            return isinstance(call, cst.ClassDef) or (
                isinstance(call, cst.Call) and called_name(call) not in _COMPARES
            )
        return isinstance(above, (cst.Decorator, cst.Assign, cst.NamedExpr, cst.Param, cst.Return)) or (
            isinstance(above, cst.AnnAssign) and above.value is node
        )

    @cached_property
    def _patched(self) -> set[str | None]:
        """The symbols that this file puts something else in the place of."""
        targets = (target.target for target in self._tree.all(cst.AssignTarget))
        return {self._names.written(target) for target in targets if isinstance(target, cst.Attribute)} - {
            None
        }

    def _is_deliberate(self, node: Node) -> bool:
        """Whether the code here has another way, or another binding of what a node is called by is one."""
        return self._fallbacks.around(node) or any(
            self._fallbacks.around(binding.node)
            for name in self._bound_to(node)
            for binding in self._names.bindings(name)
            if not self._tree.contains(binding.node, node)
        )

    def _bound_to(self, node: Node) -> list[cst.Name]:
        """The names that an import or an alias gives what it names."""
        above = self._tree.parent[node]
        named: list[Node] = []
        if isinstance(node, cst.ImportAlias):
            named = [node.asname.name if node.asname is not None else node.name]
        elif isinstance(above, cst.Assign):
            named = [target.target for target in above.targets]
        return [name for name in named if isinstance(name, cst.Name)]
