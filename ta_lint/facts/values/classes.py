"""The classes of a file: their bases, their methods, and the attributes of `self`."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, attribute_of_self

# External classes known to derive from an ancestor; a class with any other external base is unknown.
_KNOWN = {
    "torch.nn.Module": regex(
        r"torch\.nn\.(?!Parameter$|Buffer$|Uninitialized|LazyModuleMixin$)_?[A-Z]\w*|"
        r"torch\.nn\.(parallel|quantized|qat|quantizable|intrinsic)\.(\w+\.)*_?[A-Z]\w*|"
        r"torch\.jit\.ScriptModule|torch\.fx\.GraphModule|torch\.optim\.swa_utils\.AveragedModel|"
        r"lightning\.(pytorch\.)?(core\.)?((module|lightning)\.)?LightningModule|"
        r"torchvision\.models\.(\w+\.)*[A-Z](?!\w*(Weights|Enum))\w*|"
        r"torch_geometric\.nn\.(\w+\.)*MessagePassing|"
        r"(transformers\.|\.+(\w+\.)*)modeling_utils\.PreTrainedModel|"
        r"(transformers\.|\.+(\w+\.)*)modeling_layers\.GradientCheckpointingLayer|"
        r"transformers\.(\w+\.)*(?!TF|Flax)\w*(PreTrainedModel|ForCausalLM|Model)"
    ),
    "lightning.LightningModule": regex(
        r"lightning\.(pytorch\.)?(core\.)?((module|lightning)\.)?LightningModule"
    ),
    "lightning.Callback": regex(r"lightning\.(pytorch\.)?(callbacks\.)?((base|callback)\.)?Callback"),
    "torch.optim.Optimizer": regex(r"torch\.optim\.[A-Z]\w*"),
    "torch.optim.lr_scheduler.LRScheduler": regex(r"torch\.optim\.lr_scheduler\._?[A-Z]\w*"),
    "torch.utils.data.Dataset": regex(
        r"torch\.utils\.data\.\w*Dataset|torchvision\.datasets\.(\w+\.)*[A-Z]\w*|torch\.utils\.data\.Subset"
    ),
    "torch.utils.data.Sampler": regex(r"torch\.utils\.data\.\w*Sampler"),
    "transformers.Trainer": regex(r"(transformers|trl)\.(\w+\.)*\w*Trainer"),
}

_PROPERTIES = frozenset({"builtins.property", "functools.cached_property"})

# Bases that define no method or attribute that checks ask for.
_BLANK_BASES = frozenset(
    {"builtins.object", "torch.nn.Module", "abc.ABC", "typing.Generic", "typing.Protocol"}
)

_DEPTH = 8

_BINDING = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.WithItem)


class Classes:
    """Queries about `class` statements and their instances' attributes."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names
        self._attributes: dict[cst.ClassDef, dict[str, list[Node]]] = {}
        self._annotations: dict[cst.ClassDef, dict[str, list[cst.Annotation]]] = {}
        self._above_here: dict[cst.ClassDef, list[cst.ClassDef]] = {}
        self._derived: dict[str, dict[cst.ClassDef, bool]] = {}  # by the ancestor
        self._families: dict[cst.ClassDef, cst.ClassDef] = {}
        self._bases: dict[cst.ClassDef, list[str | cst.ClassDef | None]] = {}
        self._lineages: dict[cst.ClassDef, list[cst.ClassDef | None]] = {}
        self._attributes_by_family: dict[str, dict[cst.ClassDef | None, list[cst.Attribute]]] = {}
        self._methods: dict[cst.ClassDef, dict[str, cst.FunctionDef]] = {}
        self._assignments: dict[cst.ClassDef, list[tuple[str, cst.Assign | cst.AnnAssign]]] = {}

    def all(self) -> list[cst.ClassDef]:
        return self._tree.all(cst.ClassDef)

    def local(self, node: Node) -> cst.ClassDef | None:
        """The class of this project that a name refers to."""
        here = self._here(node)
        if here is not None or self._names.is_function_elsewhere(node):
            return here
        for _ in range(_DEPTH):
            binding = self._names.defined_elsewhere(node)
            if binding is None:
                return None
            if isinstance(binding.node, cst.ClassDef):
                return binding.node
            if binding.how != "assign" or binding.value is None:
                return None
            node = binding.value
            if (found := self._here(node)) is not None:
                return found
        return None

    def _here(self, node: Node) -> cst.ClassDef | None:
        """The class that a name refers to in its own file."""
        for _ in range(_DEPTH):
            if not isinstance(node, cst.Name):
                return None
            bindings = self._names.bindings(node)
            if len(bindings) != 1:
                return None
            if isinstance(bindings[0].node, cst.ClassDef):
                return bindings[0].node
            if bindings[0].how != "assign" or bindings[0].value is None:
                return None
            node = bindings[0].value
        return None

    def bases(self, klass: cst.ClassDef) -> list[str | cst.ClassDef | None]:
        """Each base: a qualified name, a class of this project, or None if unknown."""
        if klass not in self._bases:
            bases = self._written_bases(klass)
            self._bases[klass] = [self.local(base) or self._names.qualified(base) for base in bases]
        return self._bases[klass]

    def _written_bases(self, klass: cst.ClassDef) -> list[cst.BaseExpression]:
        bases = [base.value for base in klass.bases if not base.star]
        # `Dataset[Sample]` derives from `Dataset`
        return [base.value if isinstance(base, cst.Subscript) else base for base in bases]

    def derives(self, klass: cst.ClassDef, ancestor: str) -> bool:
        """Whether a class certainly derives from the class with this qualified name.

        Known subclasses count: any class of `torch.nn` for `torch.nn.Module`, `Adam` for `Optimizer`.
        """
        known = self._derived.setdefault(ancestor, {})
        pending = [] if klass in known else [klass]
        while pending:
            current = pending[-1]
            new = [base for base in self._bases_here(current) if base not in known]
            if current not in known and new:
                known[current] = False  # a class does not derive from itself
                pending += new
                continue
            pending.pop()
            known[current] = any(known[base] for base in self._bases_here(current)) or any(
                self._derives_elsewhere(base, ancestor)
                for base in self._written_bases(current)
                if self._here(base) is None
            )
        return known[klass]

    def _bases_here(self, klass: cst.ClassDef) -> list[cst.ClassDef]:
        """The bases of a class that its own file defines."""
        if klass not in self._above_here:
            found = map(self._here, self._written_bases(klass))
            self._above_here[klass] = [base for base in found if base is not None]
        return self._above_here[klass]

    def is_subclass(self, node: Node, ancestor: str) -> bool:
        """Whether a name certainly stands for a class of this project that derives from the class with this qualified name."""
        here = self._here(node)
        if here is not None:
            return self.derives(here, ancestor)
        return self._names.ancestors(node) is not None and self._derives_elsewhere(node, ancestor)

    def _derives_elsewhere(self, node: Node, ancestor: str) -> bool:
        """As `is_subclass`, of a class that is not in the file of the node."""
        return any(base == ancestor or _known(base, ancestor) for base in self._above(node))

    def _above(self, node: Node) -> frozenset[str]:
        """The full names of the classes outside of the project that a base of another file derives from, or is."""
        above = self._names.ancestors(node)
        return above if above is not None else frozenset({self._names.qualified(node) or ""})

    def is_of_project(self, node: Node) -> bool:
        """Whether a name stands for a class that the project defines."""
        return self._here(node) is not None or self._names.ancestors(node) is not None

    def inherits(self, klass: cst.ClassDef, ancestor: cst.ClassDef) -> bool:
        """Whether one class of this project derives from another."""
        if klass is ancestor:
            return False
        if self._tree.root_of(klass) is not self._tree.root_of(ancestor):
            return ancestor in self._lineage(klass)
        pending, seen = [klass], {klass}
        while pending:
            new = [base for base in self._bases_here(pending.pop()) if base not in seen]
            if ancestor in new:
                return True
            pending += new
            seen.update(new)
        return False

    def related(self, one: cst.ClassDef, other: cst.ClassDef) -> bool:
        """Whether two classes of this project are the same, or one derives from the other."""
        return one is other or self.inherits(one, other) or self.inherits(other, one)

    def family(self, klass: cst.ClassDef) -> cst.ClassDef:
        """One class for all of its file that bases connect, so that only those of one family are `related`."""
        if klass not in self._families:
            beside: dict[cst.ClassDef, list[cst.ClassDef]] = {}
            for one in self._tree.within(self._tree.root_of(klass), cst.ClassDef):
                beside.setdefault(one, [])
                for base in self._bases_here(one):
                    beside[one].append(base)
                    beside.setdefault(base, []).append(one)
            for one in beside:
                pending = [] if one in self._families else [one]
                while pending:
                    current = pending.pop()
                    if current not in self._families:
                        self._families[current] = one
                        pending += beside[current]
        return self._families[klass]

    def is_whole(self, klass: cst.ClassDef) -> bool:
        """Whether all bases of a class are in this project, apart from known ones such as `torch.nn.Module`."""
        pending, seen = [klass], {klass}
        while pending:
            for base in self._written_bases(pending.pop()):
                here = self._here(base)
                if here is None and not self._above(base) <= _BLANK_BASES:
                    return False
                if here is not None and here not in seen:
                    pending.append(here)
                    seen.add(here)
        return True

    def method_around(self, node: Node) -> cst.FunctionDef | None:
        """The method around a node, across nested functions, if its first parameter is `self`."""
        inner = node
        for above in self._tree.ancestors(node):
            if isinstance(above, cst.ClassDef):
                break
            if isinstance(above, cst.FunctionDef):
                inner = above
        if not isinstance(inner, cst.FunctionDef) or not isinstance(self._tree.home(inner), cst.ClassDef):
            return None
        first = inner.params.params[:1]
        return inner if first and first[0].name.value == "self" else None

    def modules(self) -> list[cst.ClassDef]:
        """The classes of this file that certainly derive from `torch.nn.Module`."""
        return [klass for klass in self.all() if self.derives(klass, "torch.nn.Module")]

    def methods(self, klass: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        if klass not in self._methods:
            found = self._tree.own(klass, cst.FunctionDef)
            self._methods[klass] = {method.name.value: method for method in found}
        return self._methods[klass]

    def method(self, klass: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method that an instance has under this name: from its class, or from the nearest base in this file.

        None if an external base may come first; `torch.nn.Module` itself defines no method that checks ask for.
        """
        for current in self._possible_owners(klass, f"def {name}"):
            if current is None:
                return None
            if (found := self.methods(current).get(name)) is not None:
                return found
        return None

    def property(self, klass: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method that code reads as the attribute `self.<name>`, if no subclass in this file has another one."""
        found = self.method(klass, name)
        if found is None or not self.is_property(found):
            return None
        others = (one for one in self.all() if name in self.methods(one) and one is not klass)
        return found if not any(self.inherits(other, klass) for other in others) else None

    def is_property(self, method: cst.FunctionDef) -> bool:
        """Whether code reads a method as an attribute."""
        decorators = [item.decorator for item in method.decorators]
        return len(decorators) == 1 and self._names.qualified(decorators[0]) in _PROPERTIES

    def _possible_owners(self, klass: cst.ClassDef, member: str) -> Iterator[cst.ClassDef | None]:
        """A class and its bases in this project, depth first, but those of other files that certainly lack the member.

        A method is `def step`, an attribute `step`. None stands for an external base.
        """
        seen: set[Node] = set()
        pending: list[Node] = [klass]
        while pending:
            current = pending.pop(0)
            if not isinstance(current, cst.ClassDef):
                found = self._owners_by(current, member)
                if found == [None]:
                    yield None
                else:
                    pending[:0] = found
                continue
            if current not in seen:
                seen.add(current)
                yield current
                pending[:0] = self._written_bases(current)

    def _owners_by(self, base: Node, member: str) -> list[Any]:
        """The class that a base stands for; None if it is external, empty if it cannot have the member."""
        here = self._here(base)
        above = self._names.ancestors(base) if here is None else None
        if here is None and above is None:
            return [] if self._names.qualified(base) in _BLANK_BASES else [None]
        if above is not None and not self._names.may_have(base, member):
            return [] if above <= _BLANK_BASES else [None]
        return [here or self.local(base)]

    def _lineage(self, klass: cst.ClassDef) -> list[cst.ClassDef | None]:
        """A class and its bases in this project, depth first; None stands for an external base."""
        if klass not in self._lineages:
            self._lineages[klass] = self._found_lineage(klass)
        return self._lineages[klass]

    def _found_lineage(self, klass: cst.ClassDef) -> list[cst.ClassDef | None]:
        found: dict[cst.ClassDef | None, None] = {}
        pending: list[cst.ClassDef | None] = [klass]
        while pending:
            current = pending.pop()
            if current in found:
                continue
            found[current] = None
            if current is not None:
                above = [base for base in self.bases(current) if base not in _BLANK_BASES]
                pending += [base if isinstance(base, cst.ClassDef) else None for base in reversed(above)]
        return list(found)

    def attribute(self, klass: cst.ClassDef, name: str) -> list[Node]:
        """All values assigned to `self.<name>` in a class, in source order.

        A plain assignment gives its value. A statement that unpacks, augments, loops or enters a context gives
        itself, so that its right side is not mistaken for the attribute's value. If no method assigns the attribute,
        the values come from the class body, or else from the nearest base in this file.
        """
        for current in self._possible_owners(klass, name):
            if current is None:
                return []
            if current not in self._attributes:
                self._attributes[current] = self._collect(current)
            if (found := self._attributes[current].get(name)) is not None:
                return found
        return []

    def hold(self, name: str, at: Node) -> bool:
        """Whether a class that code at a node may have objects of can assign an attribute of this name.

        For code of this file, a class of it or of one that it imports.
        """
        return (
            name in self._held or name in self._names.attributes_of_imports or id(at) not in self._tree.number
        )

    @cached_property
    def _held(self) -> set[str]:
        """The names of all `self` attributes in the file, and of all names bound in class bodies."""
        on_self = {name for node in self._tree.all(cst.Attribute) if (name := attribute_of_self(node))}
        in_body = {
            target.value
            for klass in self.all()
            for statement in self._tree.own(klass, *_BINDING)
            for target in _targets(statement)
            if type(target) is cst.Name
        }
        return on_self | in_body

    def assignments(self, klass: cst.ClassDef) -> list[tuple[str, cst.Assign | cst.AnnAssign]]:
        """Each statement in a class that assigns a single attribute of `self`, with the attribute's name."""
        if klass not in self._assignments:
            self._assignments[klass] = self._collect_assignments(klass)
        return self._assignments[klass]

    def _collect_assignments(self, klass: cst.ClassDef) -> list[tuple[str, cst.Assign | cst.AnnAssign]]:
        found: list[tuple[str, cst.Assign | cst.AnnAssign]] = []
        for statement in self._tree.within(klass, cst.Assign, cst.AnnAssign):
            targets = _targets(statement)
            if len(targets) != 1 or isinstance(targets[0], (cst.Tuple, cst.List)) or statement.value is None:
                continue
            if self._tree.enclosing(statement, cst.ClassDef) is klass:
                found += [(name, statement) for name in _self_attributes(targets[0])]
        return found

    def mentions(self, name: str) -> list[cst.Attribute]:
        """The uses of an attribute of this name on any object, without the places that bind it."""
        return [
            attribute
            for attribute in self._attributes_by_name.get(name, [])
            if not isinstance(self._tree.parent[attribute], (cst.AssignTarget, cst.AnnAssign))
        ]

    def attributes_of(self, klass: cst.ClassDef, name: str) -> list[cst.Attribute]:
        """The uses of an attribute of this name in this file, without those of `self` in classes of other families."""
        if self._tree.root_of(klass) is not self._tree.root:
            return self._attributes_by_name.get(name, [])
        by_family = self._by_family(name)
        found = [*by_family.get(None, ()), *by_family.get(self.family(klass), ())]
        return sorted(found, key=self._tree.order)

    def _by_family(self, name: str) -> dict[cst.ClassDef | None, list[cst.Attribute]]:
        """The uses of an attribute of this name by the family whose `self` has it; under None those of other objects."""
        if name not in self._attributes_by_family:
            found = self._attributes_by_family[name] = {}
            for attribute in self._attributes_by_name.get(name, ()):
                of_self = attribute_of_self(attribute) is not None
                around = self._tree.enclosing(attribute, cst.ClassDef) if of_self else None
                found.setdefault(self.family(around) if around is not None else None, []).append(attribute)
        return self._attributes_by_family[name]

    def mentions_elsewhere(self, klass: cst.ClassDef, name: str) -> list[cst.Attribute] | None:
        """The uses, without the places that bind it, of what may be an attribute of a class in the other files of the programs
        that this file is part of; None if they are not known.
        """
        roots = self._names.beside(f".{name}", around=klass)
        if roots is None:
            return None
        return [
            attribute
            for root in dict.fromkeys([self._tree.root_of(klass), *roots])
            if root is not self._tree.root
            for attribute in self._tree.within(root, cst.Attribute)
            if attribute.attr.value == name
            and not isinstance(self._tree.parent[attribute], (cst.AssignTarget, cst.AnnAssign))
            and self.may_be_of(attribute, klass)
        ]

    def may_be_of(self, attribute: cst.Attribute, klass: cst.ClassDef) -> bool:
        """Whether an attribute may be one of a class: no attribute of `self` in a class that has nothing to do with it."""
        if attribute_of_self(attribute) is None:
            return not self._is_path_of_file(attribute)
        other = self._tree.enclosing(attribute, cst.ClassDef)
        return other is not None and self.related(other, klass)

    def _is_path_of_file(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is a part of an import's path: `package.heads` in `from package.heads import Head`."""
        above = self._tree.parent[attribute]
        while isinstance(above, cst.Attribute):
            above = self._tree.parent[above]
        return isinstance(above, (cst.ImportFrom, cst.ImportAlias))

    @cached_property
    def _attributes_by_name(self) -> dict[str, list[cst.Attribute]]:
        """All attribute accesses of the file by attribute name, in source order."""
        found: dict[str, list[cst.Attribute]] = {}
        for attribute in self._tree.all(cst.Attribute):
            found.setdefault(attribute.attr.value, []).append(attribute)
        return found

    def annotations(self, klass: cst.ClassDef, name: str) -> list[cst.Annotation]:
        """The annotations of `self.<name>`, in methods or in the class body."""
        if klass not in self._annotations:
            found = self._annotations[klass] = {}
            for statement in self._tree.within(klass, cst.AnnAssign):
                if self._tree.enclosing(statement, cst.ClassDef) is klass:
                    for target in self._attribute_names(statement.target, klass):
                        found.setdefault(target, []).append(statement.annotation)
        return self._annotations[klass].get(name, [])

    def _attribute_names(self, target: Node, klass: cst.ClassDef) -> list[str]:
        if isinstance(target, cst.Name):
            return [target.value] if self._tree.home(target) is klass else []
        return _self_attributes(target)

    def _collect(self, klass: cst.ClassDef) -> dict[str, list[Node]]:
        on_self: dict[str, list[Node]] = {}
        in_body: dict[str, list[Node]] = {}
        for statement in self._tree.within(klass, *_BINDING):
            if self._tree.enclosing(statement, cst.ClassDef) is not klass:
                continue
            value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else statement
            if value is None:
                continue
            for target in _targets(statement):
                plain = isinstance(target, (cst.Name, cst.Attribute))
                for name in _self_attributes(target):
                    on_self.setdefault(name, []).append(value if plain else statement)
                if isinstance(target, cst.Name) and self._tree.home(statement) is klass:
                    in_body.setdefault(target.value, []).append(value)
        return in_body | on_self


def _targets(statement: cst.Assign | cst.AnnAssign | cst.AugAssign | cst.For | cst.WithItem) -> list[Node]:
    if isinstance(statement, cst.Assign):
        return [item.target for item in statement.targets]
    if isinstance(statement, cst.WithItem):
        return [statement.asname.name] if statement.asname is not None else []
    return [statement.target]


def _self_attributes(target: Node) -> list[str]:
    """`x` for the target `self.x`, both names for `self.x, self.y`."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [name for element in target.elements for name in _self_attributes(element.value)]
    name = attribute_of_self(target)
    return [name] if name is not None else []


def _known(base: str, ancestor: str) -> bool:
    return ancestor in _KNOWN and _KNOWN[ancestor].fullmatch(base) is not None
