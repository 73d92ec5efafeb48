"""Plain Python containers on `self`, and their elements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TypeVar

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.layers import Layers, added
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, attribute_of_self, is_name

NodeT = TypeVar("NodeT", bound=cst.CSTNode)


@dataclass(frozen=True, eq=False)
class Container:
    """A list, tuple or dict that `self.<name>` certainly is.

    `statement` is the assignment to `self`; `elements` are the expressions for its elements, as far as the class shows
    them.
    """

    klass: cst.ClassDef
    name: str
    kind: str
    statement: cst.Assign | cst.AnnAssign
    elements: tuple[Node, ...]


class Containers:
    """The plain containers of classes."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, layers: Layers) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._layers = layers
        self._added_to: dict[cst.ClassDef, dict[str, list[Node]]] = {}

    def of(self, klass: cst.ClassDef) -> list[Container]:
        """The attributes of a class that are plain containers in every assignment, `None` aside, and are not deleted."""
        statements: dict[str, list[cst.Assign | cst.AnnAssign]] = {}
        assignments: list[cst.Assign | cst.AnnAssign] = self._tree.within(klass, cst.Assign, cst.AnnAssign)
        for statement in assignments:
            names = _assigned(statement)
            if names and self._tree.enclosing(statement, cst.ClassDef) is klass:
                for name in names:
                    statements.setdefault(name, []).append(statement)
        dropped = {
            attribute_of_self(target)
            for deleted in self._within(klass, cst.Del)
            for target in _deleted(deleted)
        }
        return [
            container
            for name, found in statements.items()
            if name not in dropped and (container := self._container(klass, name, found)) is not None
        ]

    def _container(
        self, klass: cst.ClassDef, name: str, statements: list[cst.Assign | cst.AnnAssign]
    ) -> Container | None:
        if any(self._is_another_thing(statement.value) for statement in statements):
            return None
        values = [
            value for value in self._classes.attribute(klass, name) if not isinstance(value, cst.AugAssign)
        ]
        values = [value for value in values if not is_name(value, "None")]
        kinds = [kind for value in values if (kind := self._layers.container(value)) is not None]
        if not kinds or len(kinds) < len(values):
            return None
        first = next((statement for statement in statements if statement.value is values[0]), None)
        if first is None:
            return None
        held = [element for value in values for element in self._layers.elements(value)]
        held += self._added(klass, name)
        return Container(klass, name, kinds[0], first, tuple(self._unnamed(element) for element in held))

    def _is_another_thing(self, value: Node | None) -> bool:
        """Whether an assigned value is clearly neither a container, nor `None`, nor a name that may refer to one."""
        return not isinstance(value, (cst.Name, NoneType)) and self._layers.container(value) is None

    def _added(self, klass: cst.ClassDef, name: str) -> Iterator[Node]:
        """The elements that the methods of a class add to `self.<name>`."""
        for part in self._additions(klass).get(name, ()):
            yield from self._layers.elements(part)

    def _additions(self, klass: cst.ClassDef) -> dict[str, list[Node]]:
        """What the methods of a class add to each attribute of `self`: calls first, then `+=`, then assigned items."""
        found = self._added_to.get(klass)
        if found is None:
            found = self._added_to[klass] = {}
            for name, parts in self._each_addition(klass):
                found.setdefault(name, []).extend(parts)
        return found

    def _each_addition(self, klass: cst.ClassDef) -> Iterator[tuple[str, Sequence[Node]]]:
        for call in self._within(klass, cst.Call):
            method = call.func
            if type(method) is cst.Attribute and (name := attribute_of_self(method.value)) is not None:
                yield name, added(call)
        for augmented in self._within(klass, cst.AugAssign):
            if (name := attribute_of_self(augmented.target)) is not None:
                yield name, [augmented.value]
        for assign in self._within(klass, cst.Assign):
            held = {
                attribute_of_self(item.target.value)
                for item in assign.targets
                if type(item.target) is cst.Subscript
            }
            yield from ((name, [assign.value]) for name in held if name is not None)

    def _unnamed(self, element: Node) -> Node:
        """The value of a local name that is used only to store the element; any other element as it is."""
        if not isinstance(element, cst.Name):
            return element
        function = self._tree.enclosing(element, *FUNCTIONS)
        definition = self._names.definition(element)
        if function is None or definition is None or definition.how != "assign" or definition.value is None:
            return element
        uses = [name for name in self._tree.within(function, cst.Name) if name.value == element.value]
        quiet = (cst.Attribute, cst.AssignTarget)  # `layer.weight`, and the assignment itself
        bare = [
            use
            for use in uses
            if use is not element
            and not isinstance(self._tree.parent[use], quiet)
            and self._names.definition(use) in (None, definition)  # another one is of another layer
        ]
        return element if bare else definition.value

    def _within(self, klass: cst.ClassDef, *kinds: type[NodeT]) -> list[NodeT]:
        found = self._tree.within(klass, *kinds)
        return [node for node in found if self._tree.enclosing(node, cst.ClassDef) is klass]


def _deleted(statement: cst.Del) -> list[cst.BaseExpression]:
    """What `del x` and `del x, y` delete."""
    target = statement.target
    return [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]


def _assigned(statement: cst.Assign | cst.AnnAssign) -> list[str]:
    """The attributes of `self` that a statement assigns, if it assigns nothing else."""
    targets = (
        [item.target for item in statement.targets]
        if isinstance(statement, cst.Assign)
        else [statement.target]
    )
    names = [attribute_of_self(target) for target in targets]
    return [name for name in names if name is not None] if None not in names else []
