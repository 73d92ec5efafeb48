"""What code puts into a container or object after it is made: `losses["kl"] = kl`, `losses.append(kl)`, `output.scores = x`."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Key, Path
from ta_lint.syntax.tree import Node, Tree, dotted, evaluated, is_name, literal_text, whole_index

TAKES = frozenset({"get", "pop", "popleft", "setdefault"})
"""Methods of containers that return one element."""

_PUTS = frozenset({"append", "appendleft", "add", "extend", "update", "setdefault", "insert"})


@dataclass(frozen=True, eq=False)
class Put:
    """Code that puts `value` into the entry of `variable` to which `path` leads.

    `spreads` says that the entries of `value` are put in, one by one.
    """

    node: Node
    variable: Node
    path: Path
    value: Node
    spreads: bool = False

    def meets(self, path: Path) -> bool:
        """Whether it may put in what a path leads to."""
        return len(self.path) <= len(path) and all(
            one is None or other is None or one == other
            for one, other in zip(self._container, path, strict=False)
        )

    @property
    def _container(self) -> Path:
        """The part of the path that leads to where the value, or each of its entries, is put."""
        return self.path[:-1] if self.spreads else self.path

    def is_exactly(self, path: Path) -> bool:
        """Whether it certainly sets the entry to which a path leads, or that this is in."""
        return not self.spreads and None not in self.path and self.path == path[: len(self.path)]

    def rest(self, path: Path) -> Path:
        """The part of a path that leads on in the value."""
        return path[len(self._container) :]


class Entries:
    """The entries that code puts into variables and attributes of `self`."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._of_file: dict[cst.Module, dict[str, list[Put]]] = {}
        self._into: dict[Node, list[Put]] = {}

    def into(self, variable: Node) -> list[Put]:
        """What may have been put into a variable before this use of it."""
        found = self._into.get(variable)
        if found is None:
            found = self._into[variable] = self._found(variable)
        return found

    def _found(self, variable: Node) -> list[Put]:
        path = dotted(variable)
        if path is None:
            return []
        root = self._tree.root_of(variable)
        if root not in self._of_file:
            found = self._of_file[root] = {}
            for put in self._all(root):
                if (name := dotted(put.variable)) is not None:
                    found.setdefault(name, []).append(put)
        return [put for put in self._of_file[root].get(path, []) if self._may_see(put, variable)]

    def _may_see(self, put: Put, use: Node) -> bool:
        tree = self._tree
        if put.variable is use:
            return False
        if isinstance(use, cst.Name) and isinstance(put.variable, cst.Name):
            if self._names.bindings(put.variable) is not self._names.bindings(use):
                return False
            if self._is_bound_anew(put.variable, use):
                return False
        elif tree.enclosing(put.node, cst.ClassDef) is not tree.enclosing(use, cst.ClassDef):
            return False
        if tree.home(put.node) is not tree.home(use):
            return True
        if tree.before(put.node, use) and not tree.apart(put.node, use):
            return True
        return any(tree.contains(loop, put.node) for loop in tree.loops(use))

    def _is_bound_anew(self, changed: cst.Name, use: cst.Name) -> bool:
        """Whether a variable certainly has another value at a use than where it was changed: `x.append(y)`, then `x = torch.cat(x)`."""
        first, second = self._names.definition(changed), self._names.definition(use)
        return first is not None and second is not None and first is not second

    def _all(self, root: cst.Module) -> Iterator[Put]:
        for item in self._tree.within(root, cst.AssignTarget):
            target, statement = item.target, self._tree.parent[item]
            if not isinstance(statement, cst.Assign):
                continue
            if isinstance(target, cst.Subscript):
                yield Put(statement, target.value, (self.key(target),), statement.value)
            elif isinstance(target, cst.Attribute) and not is_name(target.value, "self"):
                yield Put(statement, target.value, (target.attr.value,), statement.value)
        for changed in self._tree.within(root, cst.AugAssign):
            if isinstance(changed.target, cst.Subscript):
                yield Put(changed, changed.target.value, (self.key(changed.target),), changed)
        for call in self._tree.within(root, cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _PUTS and call.args:
                yield from self._by_call(call, call.func.value, call.func.attr.value)

    def _by_call(self, call: cst.Call, target: Node, method: str) -> Iterator[Put]:
        if method == "update":
            for arg in call.args:
                path: Path = (arg.keyword.value,) if arg.keyword is not None else (None,)
                yield Put(call, target, path, arg.value, spreads=arg.keyword is None)
            return
        inner: Path = (None,)
        if method == "setdefault":
            inner = (self.literal(call.args[0].value),)
        if isinstance(target, cst.Call) and isinstance(target.func, cst.Attribute):
            if target.func.attr.value in TAKES and target.args:  # losses.setdefault("kl", []).append(kl)
                inner, target = (self.literal(target.args[0].value), *inner), target.func.value
        elif isinstance(target, cst.Subscript):
            inner, target = (self.key(target), *inner), target.value
        yield Put(call, target, inner, call.args[-1].value, spreads=method == "extend")

    def key(self, node: cst.Subscript) -> Key:
        """The entry that a subscript means, None for any."""
        if (place := whole_index(node)) is not None:
            return place
        index = node.slice[0].slice if len(node.slice) == 1 else None
        return self.literal(index.value) if isinstance(index, cst.Index) else None

    def literal(self, node: Node) -> Key:
        """The key that an expression certainly is."""
        if (text := literal_text(node)) is not None:
            return text
        if isinstance(node, cst.Integer):
            return evaluated(node)
        return self._kinds.string(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
