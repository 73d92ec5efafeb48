"""What torch has removed, deprecated or never published, and where a file uses it."""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from typing import Literal, NamedTuple

import libcst as cst
import msgspec

from ta_lint.facts.kinds import Kind, Kinds
from ta_lint.facts.names import Names
from ta_lint.facts.tree import Node, Tree

_RECEIVERS = {"Tensor": (Kind.TENSOR, Kind.PARAMETER), "Module": (Kind.MODULE, Kind.CRITERION)}
_PLACES = {"Tensor": "torch", "Module": "torch.nn"}

# What somebody asks who has thought of several versions of torch.
_ASKS_FOR_VERSION = re.compile(
    r"(?i)version|hasattr|getattr|callable\(|find_spec|TORCH_\w*\d|\b(?:has|is|use|using|with)_?torch|_(?:ge|gt|lt|le)_\d"
    r"|(?<!is)_available\b|\bin dir\("
)
_EXPECTED = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError"})

# Calls that are given a class to compare with, not to use.
_COMPARES = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "setattr", "type", "id", "register"})


class Rewrite(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How a call of the old name becomes one of the new: by another name, and what else is said here.

    `first` and `last` are arguments put before and after the others. `takes` are the parameters that a call may give,
    in order, the first `positional` of them by position (all, if that is not said); any other call is left alone. With
    `named`, arguments by position become keywords. `keywords` are parameters that have another name, `numbers` those
    that must be given a number, `drops` those that must be given this very value, and go. With `listed` all arguments
    become one list. `decorates`: a decorator without a call gets one. `suffix` comes after a name that is no call.
    """

    first: str = ""
    last: str = ""
    takes: list[str] | None = None
    positional: int | None = None
    named: bool = False
    keywords: dict[str, str] = {}
    numbers: list[str] = []
    drops: dict[str, str] = {}
    listed: bool = False
    decorates: bool = False
    suffix: str = ""

    @property
    def renames_only(self) -> bool:
        """Whether any use of the old name may be one of the new."""
        return self == Rewrite()


class Row(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """One symbol of `api.toml`, which says what the fields mean."""

    symbol: str
    kind: Literal["call", "attribute", "method", "module"] = "call"
    deprecated: str = ""
    removed: str = ""
    private: bool = False
    replacement: str = ""
    new: str = ""
    replacement_since: str = ""
    equal: bool = False
    fix: Rewrite | None = None
    needs: list[str] = []
    names: list[str] = []

    @property
    def last(self) -> str:
        return self.symbol.rpartition(".")[2]

    @property
    def said(self) -> str:
        """What the message says takes its place; empty where nothing does."""
        return self.replacement or (f"`{self.new}`" if self.new else "")


class Use(NamedTuple):
    """A place where a file uses a symbol: an import, a name or a call of a method; `name` is what is used there."""

    node: Node
    row: Row
    name: str


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    api: list[Row]


@cache
def rows() -> dict[str, Row]:
    """The data, by symbol."""
    text = files("ta_lint.facts").joinpath("api.toml").read_text(encoding="utf-8")
    return {row.symbol: row for row in msgspec.toml.decode(text, type=_Table).api}


def release(version: str) -> tuple[int, int]:
    """`(1, 13)` for `1.13`."""
    major, minor = version.split(".")
    return int(major), int(minor)


def needs(status: Literal["removed", "deprecated", "private"]) -> tuple[str, str]:
    """What a file that uses a symbol of this status holds: plain words, and an import straight from `torch`."""
    wanted = [row for row in rows().values() if getattr(row, status)]
    words = sorted({word for row in wanted for word in row.needs or [row.last]}, key=len)
    shortest: list[str] = []
    for word in words:
        if not any(other in word for other in shortest):
            shortest.append(word)
    plain = "|".join(re.sub(r"([.()])", r"\\\1", word) for word in shortest)
    at_top = [row.last for row in wanted if row.symbol.count(".") == 1 and row.kind == "call" and row.needs]
    return plain, rf"from torch import [^\n]*\b(?:{'|'.join(at_top) or 'torch'})\b"


class Api:
    """Where a file uses the symbols of the data, deliberate fallbacks for other versions of torch aside."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds

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
                isinstance(call, cst.Call) and _last_name(call.func) not in _COMPARES
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
        """Whether the code around a node, or before it, asks which torch this is, or expects a name to be missing."""
        return self._is_fallback(node) or any(
            self._is_fallback(binding.node)
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

    def _is_fallback(self, node: Node) -> bool:
        importing = isinstance(node, (cst.ImportAlias, cst.ImportFrom))
        for above in self._tree.ancestors(node):
            if isinstance(above, (cst.ExceptHandler, cst.ExceptStarHandler)):
                return True
            if isinstance(above, (cst.Try, cst.TryStar)) and any(
                importing or self._expects(handler) for handler in above.handlers
            ):
                return True
            if isinstance(above, (cst.If, cst.IfExp)) and self._asks_for_version(above.test):
                return True
        return any(self._ends_otherwise(statement) for statement in self._tree.preceding(node))

    def _ends_otherwise(self, statement: Node) -> bool:
        """Whether what follows a statement runs on some versions alone: an early return, or an assertion."""
        if isinstance(statement, cst.Assert):
            return self._asks_for_version(statement.test)
        return (
            isinstance(statement, cst.If)
            and bool(self._tree.own(statement.body, cst.Return, cst.Raise))
            and self._asks_for_version(statement.test)
        )

    def _expects(self, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
        if handler.type is None:
            return False
        return any(name.value in _EXPECTED for name in self._tree.within(handler.type, cst.Name))

    def _asks_for_version(self, test: Node) -> bool:
        """A test that names a version or looks for a name, itself or behind the names in it."""
        code = self._tree.root.code_for_node
        if _ASKS_FOR_VERSION.search(code(test)):
            return True
        origins = (self._kinds.origin(name) for name in self._tree.within(test, cst.Name))
        return any(
            isinstance(origin, (cst.Call, cst.Comparison)) and _ASKS_FOR_VERSION.search(code(origin))
            for origin in origins
        )


def _last_name(node: Node) -> str | None:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else None
