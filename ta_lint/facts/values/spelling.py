"""How a fix spells a qualified name at a given place: by an import that certainly ran, or by a new one."""

import sys
from functools import cached_property

import libcst as cst

from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.imports import imported_before, packages
from ta_lint.syntax.tree import Node, Tree, evaluated

_LEAVES = (cst.Raise, cst.Return, cst.Break, cst.Continue)
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")

# Calls that may bind names without a visible statement.
_HIDDEN_BINDERS = frozenset({"builtins.exec", "builtins.globals"})


class Spellings:
    """The spellings that a fix may use for a qualified name.

    An import certainly ran if every path to the place passes it: it comes earlier in an enclosing statement list, and
    nothing jumps around it. A function defined below an import runs after it; one defined above may not. Nothing else
    in the file may bind, delete or hide the name.
    """

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names

    def of(self, qualified: str, at: Node) -> tuple[str, tuple[str, ...]] | None:
        """How code at a node can spell `module.name`: the spelling, and the import statements that it needs.

        Uses the file's own imports if they reach the node: `deepcopy` after `from copy import deepcopy`. None if none
        does and no import may be added: because the module's name means something else in this file, or because the
        import would load it earlier, before the file sets environment variables for it.
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
        """The shortest spelling by imports that certainly ran; None if there is none."""
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
        """Whether the file replaces a qualified name, or a module on its path.

        By an assignment, or by a string with the name, as `mock.patch` takes.
        """
        if any(f"{qualified}.".startswith(f"{patched}.") for patched in self._assigned):
            return True
        return any(evaluated(string) == qualified for string in self._tree.all(cst.SimpleString))

    # -- what has certainly run -------------------------------------------------------------------------------

    def _is_certain(self, name: str, binding: Binding, at: Node) -> bool:
        statement = self._tree.statement(binding.node)
        return self._has_run(statement, at) and not self._may_be_hidden(name, binding)

    def _has_run(self, statement: Node, at: Node) -> bool:
        """Whether every path to a node passes the end of a statement."""
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
        """Whether a block ends by leaving the enclosing block: `raise`, `sys.exit()`."""
        last = block.body[-1]
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._names.qualified(small.value.func) in _ENDS
        return isinstance(small, _LEAVES)

    # -- what may be in its place -----------------------------------------------------------------------------

    def _may_be_hidden(self, name: str, binding: Binding | None) -> bool:
        """Whether a star import, `exec` or the like may rebind a name unseen after its binding."""
        if self._binds_unseen or name in self._type_parameters:
            return True
        return any(
            (binding is None or self._tree.before(binding.node, star))
            and not (name == "torch" and _is_of_torch(star))  # torch's own modules bind it to torch
            for star in self._stars
        )

    @cached_property
    def _stars(self) -> list[cst.ImportFrom]:
        return [node for node in self._tree.all(cst.ImportFrom) if isinstance(node.names, cst.ImportStar)]

    @cached_property
    def _binds_unseen(self) -> bool:
        """Whether the file executes text as code, or accesses its variables as a dictionary."""
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
