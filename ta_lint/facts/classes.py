"""The classes of a file: what they derive from, their methods, and what `self` holds."""

import libcst as cst

from ta_lint.facts.names import Names
from ta_lint.facts.tree import Node, Tree

# Base classes from elsewhere that are modules; a class with another foreign base is unknown.
_MODULE_BASES = frozenset(
    {
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "torch.jit.ScriptModule",
        "transformers.PreTrainedModel",
    }
)


class Classes:
    """Queries about `class` statements and their instances' attributes."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names
        self._attributes: dict[cst.ClassDef, dict[str, list[Node]]] = {}

    def all(self) -> list[cst.ClassDef]:
        return self._tree.all(cst.ClassDef)

    def local(self, node: Node) -> cst.ClassDef | None:
        """The class statement of this file that a name stands for."""
        if isinstance(node, cst.Name):
            bindings = self._names.bindings(node)
            if len(bindings) == 1 and isinstance(bindings[0].node, cst.ClassDef):
                return bindings[0].node
        return None

    def bases(self, klass: cst.ClassDef) -> list[str | cst.ClassDef | None]:
        """Each base: a qualified name, a class of this file, or None where unknown."""
        return [self.local(base.value) or self._names.qualified(base.value) for base in klass.bases if not base.star]

    def derives(self, klass: cst.ClassDef, ancestor: str) -> bool:
        """Whether a class certainly derives from the class with that qualified name.

        For `torch.nn.Module` any class of `torch.nn` counts, and a few well-known subclasses elsewhere.
        """
        seen: set[cst.ClassDef] = set()
        pending = [klass]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            for base in self.bases(current):
                if isinstance(base, cst.ClassDef):
                    pending.append(base)
                elif base is not None and (base == ancestor or _known(base, ancestor)):
                    return True
        return False

    def modules(self) -> list[cst.ClassDef]:
        """The classes of this file that certainly derive from `torch.nn.Module`."""
        return [klass for klass in self.all() if self.derives(klass, "torch.nn.Module")]

    def methods(self, klass: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        found = self._tree.own(klass, cst.FunctionDef)
        return {method.name.value: method for method in found}

    def attribute(self, klass: cst.ClassDef, name: str) -> list[Node]:
        """What is assigned to `self.<name>` anywhere in a class, in source order.

        The value of a plain assignment; where the assignment unpacks or augments, the statement, so that nobody
        takes the right side for the attribute's value.
        """
        if klass not in self._attributes:
            self._attributes[klass] = self._collect(klass)
        return self._attributes[klass].get(name, [])

    def _collect(self, klass: cst.ClassDef) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for assign in self._tree.within(klass, cst.Assign, cst.AnnAssign, cst.AugAssign):
            targets = [item.target for item in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            for target in targets:
                plain = isinstance(target, cst.Attribute) and not isinstance(assign, cst.AugAssign)
                for name in _self_attributes(target):
                    if assign.value is not None:
                        found.setdefault(name, []).append(assign.value if plain else assign)
        return found


def _self_attributes(target: Node) -> list[str]:
    """`x` for the target `self.x`, both names for `self.x, self.y`."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [name for element in target.elements for name in _self_attributes(element.value)]
    if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self":
        return [target.attr.value]
    return []


def _known(base: str, ancestor: str) -> bool:
    return ancestor == "torch.nn.Module" and (
        base in _MODULE_BASES or (base.startswith("torch.nn.") and base.rpartition(".")[2][:1].isupper())
    )
