"""Plain Python containers on `self`: their elements, and whether other code can reach them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TypeVar

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.layers import Layers, added
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, attribute_of_self, is_name

NodeT = TypeVar("NodeT", bound=cst.CSTNode)

# Methods that return the container's elements in another form.
_VIEWS = frozenset("copy items keys values".split())

# Builtins that only inspect a container, and builtins that return its elements.
_LOOKS = frozenset("abs all any bool id isinstance len max min print range repr str sum type".split())
_ITERATES = frozenset("enumerate iter list next reversed sorted tuple zip".split())

# Methods that code calls on each element when it knows that the elements are not registered.
_FOR_ELEMENTS = frozenset(
    "add_module apply cpu cuda eval load_state_dict modules named_modules requires_grad_ state_dict to train "
    "zero_grad".split()
)
# Methods whose results code collects to train the elements, which are still neither moved nor saved.
_FOR_TRAINING = frozenset({"named_parameters", "parameters"})
_COLLECTS = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.iter", "itertools.chain", "itertools.chain.from_iterable"}
)
_DEPTH = 6


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

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, layers: Layers) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
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

    def escapes(self, container: Container) -> bool:
        """Whether the container or its elements reach code that may register, move or train them.

        Calling, indexing or inspecting an element does not count.
        """
        if any(self._goes(use) for use in self._uses(container)):
            return True
        elsewhere = self._classes.mentions_elsewhere(container.klass, container.name)
        return elsewhere is None or any(
            self._goes(use) for use in elsewhere if self._may_be_of(use, container.klass)
        )

    def hides(self, container: Container) -> bool:
        """Whether this is an indexed one-element list: the usual way to hide a module on purpose."""
        value = container.statement.value
        return (
            isinstance(value, (cst.List, cst.Tuple))
            and len(container.elements) == 1
            and any(isinstance(self._tree.parent[use], cst.Subscript) for use in self._uses(container))
        )

    def _uses(self, container: Container) -> Iterator[Node]:
        for attribute in self._classes.attributes_of(container.klass, container.name):
            if self._may_be_of(attribute, container.klass):
                yield attribute
        local = container.statement.value
        function = self._tree.enclosing(container.statement, *FUNCTIONS)
        if isinstance(local, cst.Name) and function is not None:
            for name in self._tree.within(function, cst.Name):
                if name.value == local.value and name is not local:
                    yield name

    def _may_be_of(self, attribute: cst.Attribute, klass: cst.ClassDef) -> bool:
        """Whether an attribute may be one of a class: not that of `config.experts`, if `config` is of another class."""
        if not self._classes.may_be_of(attribute, klass):
            return False
        other = self._kinds.declared_class(attribute.value)
        return other is None or self._classes.related(other, klass)

    def _goes(self, node: Node) -> bool:
        """Whether a use of a container, or of something taken from it, passes it on."""
        parent = self._tree.parent[node]
        match parent:
            case cst.Attribute():
                return node is parent.value and self._goes_by_method(parent)
            case cst.Arg():
                return node is parent.value and self._goes_by_argument(parent)
            case cst.Subscript():
                return node is parent.value and self._goes(parent)
            case cst.For() | cst.CompFor():
                return node is parent.iter and self._elements_go(parent)
            case cst.AnnAssign() | cst.AugAssign():
                return node is not parent.target
            case cst.IfExp():
                return node is not parent.test
            case cst.BinaryOperation():
                return not isinstance(parent.operator, cst.MatrixMultiply)
        return not isinstance(parent, _LOOKING)

    def _goes_by_method(self, attribute: cst.Attribute) -> bool:
        call = self._tree.parent[attribute]
        if attribute.attr.value in _FOR_ELEMENTS:
            return True
        if attribute.attr.value in _FOR_TRAINING:
            return not isinstance(call, cst.Call) or not self._is_collected(call)
        return attribute.attr.value in _VIEWS and isinstance(call, cst.Call) and self._goes(call)

    def _is_collected(self, node: Node, depth: int = _DEPTH) -> bool:
        """Whether parameters only go into a list that a method returns: an optimizer gets them, and no module."""
        above = self._tree.parent[node]
        if depth == 0:
            return False
        match above:
            case cst.Return() | cst.Yield():
                function = self._tree.home(node)
                return isinstance(function, cst.FunctionDef) and function.name.value not in _FOR_TRAINING
            case cst.CompFor():
                comprehension = self._comprehension(above)
                return above.iter is node and self._is_collected(comprehension, depth - 1)
            case cst.AugAssign():
                return above.value is node and self._name_is_collected(above.target, depth - 1)
            case cst.Assign():
                return above.value is node and self._name_is_collected(above.targets[0].target, depth - 1)
            case cst.Arg():
                return self._argument_is_collected(above, depth - 1)
            case (
                cst.From()
                | cst.List()
                | cst.Tuple()
                | cst.ListComp()
                | cst.GeneratorExp()
                | cst.Element()
                | cst.StarredElement()
                | cst.DictElement()
                | cst.Dict()
                | cst.BinaryOperation()
            ):
                return self._is_collected(above, depth)
        return False

    def _comprehension(self, loop: cst.CompFor) -> Node:
        above: Node = loop
        while isinstance(above, cst.CompFor):
            above = self._tree.parent[above]
        return above

    def _argument_is_collected(self, arg: cst.Arg, depth: int) -> bool:
        """Whether a call gives its argument on, or puts it into a list that is collected."""
        call = self._tree.parent[arg]
        if not isinstance(call, cst.Call):
            return False
        if self._names.qualified(call.func) in _COLLECTS:
            return self._is_collected(call, depth)
        adds = isinstance(call.func, cst.Attribute) and call.func.attr.value in ("append", "extend")
        return (
            adds and isinstance(call.func, cst.Attribute) and self._name_is_collected(call.func.value, depth)
        )

    def _name_is_collected(self, target: Node, depth: int) -> bool:
        """Whether a local list or dictionary is used for nothing else than to be collected."""
        if isinstance(target, cst.Subscript):
            target = target.value  # groups["head"] = parameters
        if not isinstance(target, cst.Name) or depth == 0:
            return False
        uses = [mention for mention in self._names.mentions(target) if mention is not target]
        return all(
            self._is_bound(use) or self._grows(use) or self._is_collected(use, depth - 1) for use in uses
        )

    def _is_bound(self, use: Node) -> bool:
        above = self._tree.parent[use]
        if isinstance(above, cst.Subscript) and above.value is use:
            return isinstance(self._tree.parent[above], cst.AssignTarget)
        return isinstance(above, cst.AssignTarget) or (
            isinstance(above, cst.AugAssign) and above.target is use
        )

    def _grows(self, use: Node) -> bool:
        above = self._tree.parent[use]
        return isinstance(above, cst.Attribute) and above.attr.value in ("append", "extend")

    def _goes_by_argument(self, arg: cst.Arg) -> bool:
        call = self._tree.parent[arg]
        called = self._names.qualified(call.func) if isinstance(call, cst.Call) and not arg.star else None
        builtin = (called or "").removeprefix("builtins.")
        if builtin in _LOOKS or (called is not None and _computes(called)):
            return False
        if builtin == "zip" and isinstance(call, cst.Call) and (found := self._zipped(call, arg)):
            return self._targets_go(*found)
        return builtin not in _ITERATES or self._goes(call)

    def _zipped(self, call: cst.Call, arg: cst.Arg) -> tuple[cst.For | cst.CompFor, Node] | None:
        """The loop over `zip(...)` and the part of its target that gets the elements of one argument."""
        above, counted = self._tree.parent[call], False
        if isinstance(above, cst.Arg):
            outer = self._tree.parent[above]
            if isinstance(outer, cst.Call) and self._names.qualified(outer.func) == "builtins.enumerate":
                above, counted = self._tree.parent[outer], True
        target: Node | None = above.target if isinstance(above, (cst.For, cst.CompFor)) else None
        if counted and isinstance(target, cst.Tuple):
            target = target.elements[-1].value
        if not isinstance(above, (cst.For, cst.CompFor)) or not isinstance(target, cst.Tuple):
            return None
        plain = len(target.elements) == len(call.args) and not any(given.star for given in call.args)
        if not plain or any(isinstance(element, cst.StarredElement) for element in target.elements):
            return None
        return above, target.elements[call.args.index(arg)].value

    def _elements_go(self, loop: cst.For | cst.CompFor) -> bool:
        target: Node = loop.target
        if isinstance(target, cst.Tuple) and _counts(loop.iter):
            target = target.elements[-1].value
        return self._targets_go(loop, target)

    def _targets_go(self, loop: cst.For | cst.CompFor, target: Node) -> bool:
        names = {name.value for name in self._tree.within(target, cst.Name)}
        region = loop if isinstance(loop, cst.For) else self._tree.statement(loop)
        return any(
            self._goes(name)
            for name in self._tree.within(region, cst.Name)
            if name.value in names and not self._tree.contains(loop.target, name)
        )

    def _within(self, klass: cst.ClassDef, *kinds: type[NodeT]) -> list[NodeT]:
        found = self._tree.within(klass, *kinds)
        return [node for node in found if self._tree.enclosing(node, cst.ClassDef) is klass]


# Directly below one of these nodes, a container or element is called, inspected or bound.
_LOOKING = (
    cst.Assert,
    cst.AssignTarget,
    cst.BooleanOperation,
    cst.Call,
    cst.Comparison,
    cst.ComparisonTarget,
    cst.Del,
    cst.Expr,
    cst.FormattedStringExpression,
    cst.If,
    cst.Index,
    cst.UnaryOperation,
    cst.While,
)


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


def _computes(called: str) -> bool:
    """Whether a function computes with a parameter that it is given, as `torch.nn.functional.linear` does."""
    package, _, name = called.rpartition(".")
    return package in ("torch", "torch.nn.functional") and name.islower()


def _counts(iterable: Node) -> bool:
    """Whether each iteration yields an index or key before the element."""
    if not isinstance(iterable, cst.Call):
        return False
    called = iterable.func
    name = called.attr if isinstance(called, cst.Attribute) else called
    return isinstance(name, cst.Name) and name.value in ("enumerate", "items")
