"""Uses of torch symbols that were removed, deprecated or never public."""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import libcst as cst

from ta_lint.facts.torch.fallbacks import Fallbacks
from ta_lint.facts.torch.symbols import Symbol, last_names, symbols
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree

_RECEIVERS = {"Tensor": (Kind.TENSOR, Kind.PARAMETER), "Module": (Kind.MODULE, Kind.CRITERION)}
_PLACES = {"Tensor": "torch", "Module": "torch.nn"}

# Calls that compare their argument, or only look at it, rather than use it.
_COMPARES = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "setattr", "type", "id", "register"})


class Use(NamedTuple):
    """A place where a file uses a symbol: an import, a name or a method call; `name` is the full name that is used."""

    node: Node
    symbol: Symbol
    name: str

    @property
    def instead(self) -> str:
        """The replacement as the message names it; for a member of a moved module, that of the new module."""
        last = self.name.rpartition(".")[2]
        return f"`{self.symbol.replacement}.{last}`" if last in self.symbol.moved else self.symbol.advice


class Api:
    """The uses of listed symbols in a file, apart from deliberate fallbacks for other versions of torch."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, fallbacks: Fallbacks) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._fallbacks = fallbacks

    @cached_property
    def uses(self) -> list[Use]:
        """All uses in source order. A symbol imported by name is used where it is imported, and only there."""
        found = [
            use
            for use in chain(self._imports(), self._references(), self._method_calls(), self._arguments())
            if not self._is_deliberate(use.node) and use.name not in self._patched
        ]
        return sorted(found, key=lambda use: self._tree.order(use.node))

    def mentions(self, use: Use) -> list[Node]:
        """Where a file goes on with what it has imported by name, in source order."""
        if not isinstance(use.node, cst.ImportAlias):
            return []
        statement = self._tree.parent[use.node]
        mentions = (name for bound in self._bound_to(use.node) for name in self._names.mentions(bound))
        return [name for name in mentions if not self._tree.contains(statement, name)]

    def _imports(self) -> Iterator[Use]:
        """The symbols imported by name; for a listed module the whole statement, once."""
        statements: set[Node] = set()
        for path, alias in self._names.imports():
            symbol = self._of_import(path)
            if symbol is None or (
                symbol.private and symbol.name != path and path.rpartition(".")[2] not in symbol.moved
            ):
                continue  # a private name in a private module has no public counterpart
            statement = self._tree.parent[alias]
            if symbol.name == path or not isinstance(statement, cst.ImportFrom):
                yield Use(alias, symbol, path)
            elif statement not in statements:
                statements.add(statement)
                yield Use(statement, symbol, path)

    def _references(self) -> Iterator[Use]:
        imported = {use.symbol.name for use in self._imports() if use.symbol.kind == "module"}
        last = last_names("callable", "attribute", "module")
        for node in self._tree.all(cst.Attribute):
            if node.attr.value not in last or self._is_part(node):
                continue
            symbol = self._symbol(node)
            if symbol is None or symbol.name in imported or not self._is_used(node, symbol):
                continue
            yield Use(node, symbol, symbol.name)

    def _is_part(self, node: cst.Attribute) -> bool:
        """Whether an attribute is in an import, or is the module of another symbol."""
        if isinstance(self._tree.statement(node), (cst.Import, cst.ImportFrom)):
            return True
        above = self._tree.parent[node]
        return isinstance(above, cst.Attribute) and self._symbol(above) is not None

    def _method_calls(self) -> Iterator[Use]:
        methods = last_names("method")
        for call in self._tree.all(cst.Call):
            if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in methods:
                continue
            for owner, kinds in _RECEIVERS.items():
                symbol = symbols().get(f"{owner}.{call.func.attr.value}")
                if symbol is not None and self._is(call.func.value, kinds):
                    yield Use(call, symbol, f"{_PLACES[owner]}.{symbol.name}")

    def _arguments(self) -> Iterator[Use]:
        listed = last_names("argument")
        for argument in self._tree.all(cst.Arg):
            name = argument.keyword.value if argument.keyword is not None else ""
            call = self._tree.parent[argument]
            if name not in listed or not isinstance(call, cst.Call):
                continue
            path = self._names.qualified(call.func) or f"Tensor.{called_name(call)}"
            for taker in (path, path.rpartition(".")[0]):
                symbol = symbols().get(f"{taker}({name})")
                if symbol is not None:
                    yield Use(argument, symbol, f"{path}({name})")

    def _is(self, node: Node, kinds: tuple[Kind, ...]) -> bool:
        """Whether a value is of one of these kinds; arithmetic only if both operands are: not `tensor * operator`."""
        origin = self._kinds.origin(node)
        if isinstance(origin, cst.BinaryOperation):
            return self._is(origin.left, kinds) and self._is(origin.right, kinds)
        return isinstance(origin, (cst.Integer, cst.Float)) or self._kinds.kind(node) in kinds

    def _symbol(self, node: cst.Attribute) -> Symbol | None:
        """The symbol of an expression, by the path in the file or by its usual name."""
        paths = (self._names.written(node), self._names.qualified(node))
        found = (symbols().get(path) for path in paths if path is not None)
        return next((symbol for symbol in found if symbol is not None and symbol.kind != "method"), None)

    def _of_import(self, path: str) -> Symbol | None:
        """The imported symbol, or the listed module that contains it."""
        symbol = symbols().get(path)
        while symbol is None and "." in path:
            path = path.rpartition(".")[0]
            symbol = found if (found := symbols().get(path)) is not None and found.kind == "module" else None
        return symbol

    def _is_used(self, node: cst.Attribute, symbol: Symbol) -> bool:
        """Whether a name is really used here, not compared, used as an annotation, or stored in a table."""
        above = self._tree.parent[node]
        if symbol.kind in ("attribute", "module"):
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
        """The symbols that this file replaces by assignment."""
        targets = (target.target for target in self._tree.all(cst.AssignTarget))
        return {self._names.written(target) for target in targets if isinstance(target, cst.Attribute)} - {
            None
        }

    def _is_deliberate(self, node: Node) -> bool:
        """Whether this code, or another binding of the same name, is a fallback for other versions."""
        return self._fallbacks.around(node) or any(
            self._fallbacks.around(binding.node)
            for name in self._bound_to(node)
            for binding in self._names.bindings(name)
            if not self._tree.contains(binding.node, node)
        )

    def _bound_to(self, node: Node) -> list[cst.Name]:
        """The names that an import or assignment binds to the symbol."""
        above = self._tree.parent[node]
        named: list[Node] = []
        if isinstance(node, cst.ImportAlias):
            named = [node.asname.name if node.asname is not None else node.name]
        elif isinstance(above, cst.Assign):
            named = [target.target for target in above.targets]
        return [name for name in named if isinstance(name, cst.Name)]
