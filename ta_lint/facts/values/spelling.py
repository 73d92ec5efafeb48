"""How code at a place can name something of a module: by what is certainly bound when that line runs, or by an import."""

import sys
from functools import cached_property

import libcst as cst

from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.imports import imported_before, packages
from ta_lint.syntax.tree import Node, Tree

_LEAVES = (cst.Raise, cst.Return, cst.Break, cst.Continue)
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")

# What binds names that no statement of the file shows.
_HIDDEN_BINDERS = frozenset({"builtins.exec", "builtins.globals"})


class Spellings:
    """Names that a fix may write.

    An import certainly has run where its own block goes on to the place: before it in a statement list that holds both,
    in which nothing leads around it. A function that is defined below an import runs after it; one that is defined
    above may not. Nothing else in the file may bind the name, delete it or hide it.
    """

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names

    def of(self, qualified: str, at: Node) -> tuple[str, tuple[str, ...]] | None:
        """How code at a node can name `module.name`: the spelling, and the import statements that it needs.

        By the file's own imports if they reach it: `deepcopy` after `from copy import deepcopy`. None where nothing does
        and no import may be added: the name of the module means something else in this file, or it would be loaded
        earlier than it is, before what the file sets for it in the environment.
        """
        found = self.bound(qualified, at)
        if found is not None:
            return found, ()
        module = qualified.rpartition(".")[0]
        package = module.partition(".")[0]
        if self._names.is_bound(package) or self._may_be_hidden(package, None) or self.is_patched(qualified):
            return None
        loaded = package in sys.stdlib_module_names or imported_before(package, at, self._tree) is not None
        return (qualified, (f"import {module}",)) if loaded else None

    def bound(self, qualified: str, at: Node) -> str | None:
        """The shortest spelling by the imports that certainly have run; None where there is none."""
        if self.is_patched(qualified):
            return None
        spellings: dict[str, str] = {}
        nearer: set[str] = set()
        for bound in self._names.visible(at):
            for name, bindings in sorted(bound.items(), key=lambda item: self._tree.order(item[1][0].node)):
                brought = {binding.qualified for binding in bindings}
                whole = brought.pop() if len(brought) == 1 and name not in nearer else None
                if whole is None or not f"{qualified}.".startswith(f"{whole}."):
                    continue
                if any(self._is_certain(name, binding, at) for binding in bindings):
                    spellings[whole] = name + qualified.removeprefix(whole)
            nearer.update(bound)
        return spellings[max(spellings, key=len)] if spellings else None

    def is_patched(self, qualified: str) -> bool:
        """Whether the file puts something else in the place of what is named, or of a module on the way to it.

        By an assignment, or by a string that names it, as `mock.patch` is given.
        """
        if any(f"{qualified}.".startswith(f"{patched}.") for patched in self._assigned):
            return True
        return any(string.evaluated_value == qualified for string in self._tree.all(cst.SimpleString))

    # -- what has certainly run -------------------------------------------------------------------------------

    def _is_certain(self, name: str, binding: Binding, at: Node) -> bool:
        statement = self._tree.statement(binding.node)
        return self._has_run(statement, at) and not self._may_be_hidden(name, binding)

    def _has_run(self, statement: Node, at: Node) -> bool:
        """Whether every way to a node passes the end of a statement."""
        tree = self._tree
        block = tree.block(statement)
        while not tree.contains(block, at):
            holder = tree.parent.get(block)
            if not isinstance(holder, cst.Try) or block is not holder.body:
                return False
            if holder.orelse is not None and tree.contains(holder.orelse, at):
                return True
            if not all(self._leaves(handler.body) for handler in holder.handlers):
                return False
            statement, block = holder, tree.block(holder)
        return tree.before(statement, at) and not tree.contains(statement, at)

    def _leaves(self, block: cst.BaseSuite) -> bool:
        """Whether a block ends by leaving what is around it: `raise`, `sys.exit()`."""
        last = block.body[-1]
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._names.qualified(small.value.func) in _ENDS
        return isinstance(small, _LEAVES)

    # -- what may be in its place -----------------------------------------------------------------------------

    def _may_be_hidden(self, name: str, binding: Binding | None) -> bool:
        """Whether something that does not say so may give a name another value after it was bound."""
        if self._binds_unseen or name in self._type_parameters:
            return True
        return any(
            (binding is None or self._tree.before(binding.node, star))
            and not (name == "torch" and _is_of_torch(star))  # whose modules know it as what it is
            for star in self._stars
        )

    @cached_property
    def _stars(self) -> list[cst.ImportFrom]:
        return [node for node in self._tree.all(cst.ImportFrom) if isinstance(node.names, cst.ImportStar)]

    @cached_property
    def _binds_unseen(self) -> bool:
        """Whether the file runs text as code, or takes its variables for a dictionary."""
        return any(
            isinstance(call.func, cst.Name) and self._names.qualified(call.func) in _HIDDEN_BINDERS
            for call in self._tree.all(cst.Call)
        )

    @cached_property
    def _type_parameters(self) -> set[str]:
        found = self._tree.all(cst.TypeVar, cst.TypeVarTuple, cst.ParamSpec, cst.TypeAlias)
        return {node.name.value for node in found}

    @cached_property
    def _assigned(self) -> set[str | None]:
        targets = (target.target for target in self._tree.all(cst.AssignTarget))
        paths = {self._names.written(target) for target in targets if isinstance(target, cst.Attribute)}
        return paths - {None}


def _is_of_torch(star: cst.ImportFrom) -> bool:
    return "torch" in packages(star)
