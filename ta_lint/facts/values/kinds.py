"""The kind of an expression in PyTorch terms. None means unknown; checks then stay silent."""

import re
from collections.abc import Iterator
from functools import cached_property
from weakref import proxy

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values import vocabulary
from ta_lint.facts.values.calls import Calls
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.names import Binding, Names
from ta_lint.facts.values.questions import Questions
from ta_lint.facts.values.vocabulary import Kind
from ta_lint.syntax.tree import (
    Node,
    Tree,
    attribute_of_self,
    dotted,
    evaluated,
    is_name,
    literal_key,
    literal_text,
)

__all__ = ["Kind", "Kinds"]

_INFINITIES = frozenset({"math.inf", "numpy.inf", "torch.inf"})
_DEPTH = 8
"""How many steps a value is followed, and how many dots: each dot doubles what is asked."""

# The only name pattern that decides a kind: every other one gave wrong results on real code.
_OPTIMIZER_NAME = regex(r"(^|_|\.)(opt|optim|optimizer|optimiser)(s|_?[a-zA-Z0-9]{0,12})?$", re.IGNORECASE)

# Functions that give the items of their last argument.
_COPIES = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.iter", "builtins.reversed", "builtins.filter"}
)

# Functions that return an attribute of their first argument, or that argument as a number.
_READS = frozenset({"builtins.getattr", "builtins.float", "builtins.int"})


class Kinds:
    """Kinds from constructors, annotations, `isinstance`, callers' arguments, and calls that return their input.

    A `self` attribute has the kind that all its assignments share, a variable that of the assignment that reaches it.
    """

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        # A weak reference avoids a cycle, so that the file's tree is freed without the garbage collector.
        kinds: Kinds = proxy(self)
        self._questions = Questions()
        self.calls = Calls(tree, names, classes, lambda node: kinds.construction(node), self._questions)
        self._kinds: dict[Node, Kind | None] = {}
        self._constructions: dict[
            int, tuple[Node, cst.Call | None]
        ] = {}  # by `id`, with the node that has it

    def kind(self, node: Node) -> Kind | None:
        """The kind of an expression's value."""
        if node in self._kinds:
            return self._kinds[node]
        question = ("kind", id(node))
        if not self._questions.open(question):  # stops at `model = model.to(device)`
            return None
        try:
            found = self._inferred(node) or self._declared(node) or self._tested(node)
        finally:
            self._questions.close(question)
        self._kinds[node] = found
        return found

    def _inferred(self, node: Node) -> Kind | None:
        origin = self.origin(node)
        if isinstance(origin, cst.Param):
            given = self._annotated(origin.annotation) or self._common(self.calls.given(origin) or [])
            return given or (Kind.TENSOR if self._is_input(origin) else None)
        if isinstance(origin, cst.IfExp):
            return self._common([origin.body, origin.orelse])
        if isinstance(origin, cst.Name) and self._is_item_of_parameters(origin):
            return Kind.PARAMETER
        if isinstance(origin, cst.Attribute) and self.layer_with(origin) is not None:
            return Kind.PARAMETER
        if isinstance(origin, (cst.Name, cst.Attribute)):
            alternatives = [value for value in self._alternatives(origin) if not self._same(value, origin)]
            return self._common(alternatives) or self._tensor(origin)
        if isinstance(origin, cst.Call) and (kind := self.instance(origin.func)) is not None:
            return kind
        call = self.construction(origin)
        if call is None and isinstance(origin, cst.Call) and (same := self.handed_on(origin)) is not None:
            return self.kind(same)  # `model.to(device)` of a parameter
        return (self.instance(call.func) if call is not None else None) or self._tensor(origin)

    def _tensor(self, node: Node) -> Kind | None:
        """TENSOR for an expression that certainly is one."""
        if isinstance(node, cst.Call):
            found = self._returns_tensor(node)
        elif isinstance(node, cst.BinaryOperation):
            found = self._is_tensor(node.left) or self._is_tensor(node.right)
        elif isinstance(node, cst.UnaryOperation):
            found = not isinstance(node.operator, cst.Not) and self._is_tensor(node.expression)
        elif isinstance(node, cst.Subscript):
            found = self._is_tensor(node.value)
        elif isinstance(node, cst.Attribute):
            found = node.attr.value in ("T", "mT", "data", "grad") and self._is_tensor(node.value)
        else:
            found = False
        return Kind.TENSOR if found else None

    def _returns_tensor(self, call: cst.Call) -> bool:
        called = self._names.qualified(call.func)
        if called is not None:
            return vocabulary.RETURNS_TENSOR.fullmatch(called) is not None
        if (returned := self.calls.returned(call)) is not None:
            return self._is_tensor(returned)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in vocabulary.TENSOR_METHODS:
            return self._is_tensor(call.func.value)
        made = self.construction(call.func)
        layer = self._names.qualified(made.func) if made is not None else None
        return layer is not None and (
            vocabulary.LAYER_RETURNS_TENSOR.fullmatch(layer) is not None
            or vocabulary.constructed(layer) is Kind.CRITERION
        )

    def _is_tensor(self, node: Node) -> bool:
        return self.kind(node) in (Kind.TENSOR, Kind.PARAMETER)

    def instance(self, constructor: Node) -> Kind | None:
        """The kind of object that a class or factory returns."""
        called = self._names.qualified(constructor)
        if called is not None:
            return vocabulary.constructed(called)
        if not self._classes.is_of_project(constructor):
            return self._chosen(constructor)
        derived = vocabulary.DERIVED.items()
        found = next((kind for base, kind in derived if self._classes.is_subclass(constructor, base)), None)
        return found or self._chosen(constructor)

    def _chosen(self, constructor: Node) -> Kind | None:
        """The kind that a variable builds, whichever of several classes it is: `SGD if plain else AdamW`, or by branches."""
        question = ("chosen", id(constructor))
        if not isinstance(constructor, cst.Name) or not self._questions.open(question):
            return None
        try:
            values = self._alternatives(constructor)
            classes = [
                each
                for value in values
                for each in ((value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,))
            ]
            kinds: set[Kind] = set()
            for each in classes:
                kind = self.instance(each) if isinstance(each, (cst.Name, cst.Attribute)) else None
                if kind is None or kinds - {kind}:
                    return None
                kinds.add(kind)
            return kinds.pop() if kinds else None
        finally:
            self._questions.close(question)

    def _common(self, values: list[Node]) -> Kind | None:
        """The kind that all values share, `None` aside."""
        kinds = {self.kind(value) for value in values if not is_name(value, "None")}
        return kinds.pop() if len(kinds) == 1 else None

    def _alternatives(self, node: cst.Name | cst.Attribute) -> list[Node]:
        """All values that a name or attribute may have; empty if one of them is unknown."""
        if not isinstance(node, cst.Name):
            return self._attribute(node)
        if (reaching := self._names.definition(node)) is not None and reaching.how == "for":
            return self._items(reaching)
        bindings = self._names.bindings(node)
        if self.is_taken_over(bindings):
            bindings = bindings[1:] if self._names.definition(node) is not bindings[0] else []
        bound = [self._bound_value(binding, node.value) for binding in bindings]
        return [value for value in bound if value is not None] if None not in bound else []

    def is_taken_over(self, bindings: list[Binding]) -> bool:
        """Whether the name of an imported file is given to something else: `import model; model = model.Net()`."""
        if not bindings or bindings[0].how != "import":
            return False
        module, *others = bindings
        is_file = isinstance(self._tree.parent[module.node], cst.Import)
        return (
            is_file
            and bool(others)
            and all(
                binding.how == "assign"
                and binding.value is not None
                and self._tree.home(binding.node) is self._tree.home(module.node)
                for binding in others
            )
        )

    def without_loads(self, made: list[cst.Call | None]) -> list[cst.Call]:
        """Calls that may have made a value, without `torch.load`, as what was saved is one of the others; empty if one is unknown."""
        calls = [call for call in dict.fromkeys(made) if call is not None]
        built = [call for call in calls if self._names.qualified(call.func) != "torch.load"]
        return (built or calls) if None not in made else []

    def _items(self, binding: Binding) -> list[Node]:
        """The values that a loop variable takes from a list in the source."""
        loop = binding.node
        if not isinstance(loop, (cst.For, cst.CompFor)) or not isinstance(loop.target, cst.Name):
            return []
        return self.elements(loop.iter)

    @cached_property
    def _replaced(self) -> frozenset[str | None]:
        """The attributes that the file assigns to, as `self.fc.weight`."""
        return frozenset(dotted(item.target) for item in self._tree.all(cst.AssignTarget))

    def layer_with(self, parameter: cst.Attribute) -> cst.Call | None:
        """The call that makes the layer of torch of which this is the weight or bias, if nothing in the file replaces it."""
        if parameter.attr.value not in ("bias", "weight") or dotted(parameter) in self._replaced:
            return None
        made = self.construction(parameter.value)
        called = self._names.qualified(made.func) if made is not None else None
        return made if called is not None and vocabulary.LAYER_HAS_WEIGHT.fullmatch(called) else None

    def _is_item_of_parameters(self, name: cst.Name) -> bool:
        """Whether a variable is a parameter that a loop gets: `for p in model.parameters()`, `for p in group["params"]`."""
        binding = self._names.definition(name)
        loop = binding.node if binding is not None else None
        return isinstance(loop, (cst.For, cst.CompFor)) and self.takes_parameters(loop, name.value)

    def takes_parameters(self, loop: cst.For | cst.CompFor, name: str) -> bool:
        """Whether a loop gives a variable the parameters of a model, or of a group of an optimizer, one by one."""
        return any(
            isinstance(target, cst.Name) and target.value == name and self._gives_parameters(iterable)
            for target, iterable in self._iterated(loop.target, loop.iter)
        )

    def _iterated(self, target: Node, iterable: Node) -> Iterator[tuple[Node, Node]]:
        """The targets of a loop, each with the iterable that it gets the items of."""
        called = self._names.qualified(iterable.func) if isinstance(iterable, cst.Call) else None
        parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
        if isinstance(iterable, cst.Call) and called in _COPIES and iterable.args:
            yield from self._iterated(target, iterable.args[-1].value)
        elif isinstance(iterable, cst.Call) and called == "builtins.zip":
            for part, arg in zip(parts, iterable.args, strict=False):
                yield from self._iterated(part, arg.value)
        elif isinstance(iterable, cst.Call) and called == "builtins.enumerate" and iterable.args:
            if len(parts) == 2:
                yield from self._iterated(parts[1], iterable.args[0].value)
        elif isinstance(iterable, cst.Call) and _method(iterable) == "named_parameters":
            yield from [(parts[1], iterable)] if len(parts) == 2 else []
        else:
            yield target, iterable

    def _gives_parameters(self, iterable: Node) -> bool:
        origin = self.origin(iterable)
        if isinstance(origin, cst.Subscript):
            return literal_key(origin) == "params"
        if not isinstance(origin, cst.Call) or _method(origin) not in ("parameters", "named_parameters"):
            return False
        return isinstance(origin.func, cst.Attribute) and (
            self.kind(origin.func.value) in (Kind.MODULE, Kind.CRITERION)
            or (self.kind(origin.func.value) is None and self.calls.callee(origin) is None)
        )

    def _is_input(self, param: cst.Param) -> bool:
        """Whether a parameter of a module's `forward` is certainly a tensor, as code uses it as it can use nothing else."""
        if is_name(param.name, "self") or self._names.qualified(param.name) is not None:
            return False
        method = self._classes.method_around(param.name)
        klass = self._tree.home(method) if method is not None else None
        if method is None or method.name.value != "forward" or not isinstance(klass, cst.ClassDef):
            return False
        if not self._classes.derives(klass, "torch.nn.Module"):
            return False
        return any(self._takes_tensor(mention, param) for mention in self._names.mentions(param.name))

    def _takes_tensor(self, mention: cst.Name, param: cst.Param) -> bool:
        """Whether code around the mention of a parameter works with a single tensor alone."""
        above = self._tree.parent[mention]
        used = (
            isinstance(above, cst.Attribute) and above.attr.value in vocabulary.METHODS_OF_TENSORS_ALONE
        ) or (isinstance(above, cst.Arg) and self._is_input_of_layer(above))
        binding = self._names.definition(mention) if used else None
        return binding is not None and binding.node is param

    def _is_input_of_layer(self, arg: cst.Arg) -> bool:
        """Whether an argument is what a layer of torch is called with, or a function of `torch.nn.functional`."""
        call = self._tree.parent[arg]
        if not isinstance(call, cst.Call) or call.args[0] is not arg or arg.star or arg.keyword is not None:
            return False
        called = self._names.qualified(call.func)
        if called is None:
            made = self.construction(call.func)
            layer = self._names.qualified(made.func) if made is not None else None
            return layer is not None and vocabulary.LAYER_RETURNS_TENSOR.fullmatch(layer) is not None
        functional = called.startswith("torch.nn.functional.")
        return functional and vocabulary.RETURNS_TENSOR.fullmatch(called) is not None

    def elements(self, node: Node) -> list[Node]:
        """The elements of the list, tuple or comprehension behind an expression; empty if some are unknown."""
        origin = self.origin(node)
        if isinstance(origin, cst.ListComp):
            return [origin.elt]
        if not isinstance(origin, (cst.List, cst.Tuple)):
            return []
        if any(isinstance(element, cst.StarredElement) for element in origin.elements):
            return []
        return [element.value for element in origin.elements]

    def _same(self, value: Node, variable: Node) -> bool:
        """Whether a value is the variable's own previous value: `self.model.to(device)` for `self.model`."""
        for _ in range(_DEPTH):
            if dotted(value) == dotted(variable):
                return True
            if not isinstance(value, cst.Call):
                return False
            if isinstance(value.func, cst.Attribute) and value.func.attr.value in vocabulary.FLUENT:
                value = value.func.value
            elif (first := self._first_argument_handed_on(value)) is not None:
                value = first
        return False

    def construction(self, node: Node) -> cst.Call | None:
        """The call that made an expression's value.

        Looks through calls that return or wrap their input: `.to(device)` of a module, `deepcopy`, `torch.compile`,
        `DataParallel`.
        """
        if id(node) in self._constructions:
            return self._constructions[id(node)][1]
        passed: list[tuple[str, int]] = []
        try:
            found = self._made(node, passed)
        finally:
            self._questions.close(*passed)
        if self._questions.hold:
            self._constructions[id(node)] = node, found
        return found

    def _made(self, node: Node, passed: list[tuple[str, int]]) -> cst.Call | None:
        call = self._moved_from(self.origin(node))
        for _ in range(_DEPTH):
            question = ("made", id(call))
            if not isinstance(call, cst.Call) or not self._questions.open(question):
                return None  # stops at `node = node.next()`
            passed.append(question)
            inner = self.handed_on(call) or self.calls.returned(call)
            if inner is None:
                return call
            call = self._moved_from(self.origin(inner))
        return None

    def _moved_from(self, node: Node) -> Node:
        """The value of a module before it is conditionally rebound to itself: `if cuda: model = model.cuda()`."""
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return node
        first = [value for value in self._alternatives(node) if not self._same(value, node)]
        if len(first) != 1 or self.kind(first[0]) not in (Kind.MODULE, Kind.CRITERION):
            return node
        return self.origin(first[0])

    def handed_on(self, call: cst.Call) -> Node | None:
        """The existing object that a call returns, if it does not make a new one."""
        if (first := self._first_argument_handed_on(call)) is not None:
            return first
        if len(call.args) == 1 and (prepared := self.prepared(call)):
            return prepared[0]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in vocabulary.FLUENT:
            receiver = call.func.value
            return receiver if self.kind(receiver) in (Kind.MODULE, Kind.CRITERION) else None
        return None

    def _first_argument_handed_on(self, call: cst.Call) -> Node | None:
        called = self._names.qualified(call.func)
        given = bool(call.args) and not call.args[0].star and call.args[0].keyword is None
        return (
            call.args[0].value
            if given and called is not None and vocabulary.HANDS_ON.fullmatch(called)
            else None
        )

    def prepared(self, call: cst.Call) -> list[Node]:
        """The arguments that a framework wraps and returns in the same order; empty for any other call."""
        if not self._prepares(call) or any(arg.keyword is not None or arg.star for arg in call.args):
            return []
        return [arg.value for arg in call.args]

    def _prepares(self, call: cst.Call) -> bool:
        called = self._names.qualified(call.func)
        if called is not None:
            return vocabulary.INITIALIZES.fullmatch(called) is not None
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in vocabulary.PREPARES:
            return False
        receiver = call.func.value
        if (dotted(receiver) or "").rpartition(".")[2] in vocabulary.PREPARER_NAMES:
            return True
        made = self.construction(receiver)
        preparer = self._names.qualified(made.func) if made is not None else None
        return preparer is not None and vocabulary.PREPARERS.fullmatch(preparer) is not None

    def origin(self, node: Node) -> Node:
        """The expression or parameter that an expression's value originates from.

        Follows names to the one assignment that reaches them, and `self.x` to its one assignment in the class. Stops
        at a call, a literal or a parameter, and where the origin is uncertain.
        """
        for _ in range(_DEPTH):
            following = self._step(node)
            if following is None:
                return node
            node = following
        return node

    def _step(self, node: Node) -> Node | None:
        if type(node) is cst.Name:
            binding = self._names.definition(node)
            return self._bound_value(binding, node.value) if binding is not None else None
        if type(node) is cst.Attribute:
            values = self._attribute(node)
            return values[0] if len(values) == 1 else None
        if type(node) is cst.NamedExpr:
            return node.value
        return None

    def _attribute(self, node: cst.Attribute) -> list[Node]:
        """All values assigned to `self.x`, or to `x` of an instance of a class in this file; else empty."""
        name = node.attr.value
        if not self._classes.hold(name, node) or _dots(node) > _DEPTH:
            return []
        klass = self.class_of(node.value)
        if klass is None:
            return []
        assigned = self._classes.attribute(klass, name) or self._handed_out(klass, name)
        values = [self._of_statement(value, name) for value in assigned]
        return [value for value in values if value is not None] if None not in values else []

    def _handed_out(self, klass: cst.ClassDef, name: str) -> list[Node]:
        """The other attribute that a property of this name hands out: `self.head` after `return self.head`."""
        method = self._classes.property(klass, name)
        leaves = self._tree.own(method, cst.Return) if method is not None else []
        value = leaves[0].value if len(leaves) == 1 else None
        return [value] if value is not None and attribute_of_self(value) is not None else []

    def class_of(self, instance: Node) -> cst.ClassDef | None:
        """The class of this project that an expression is an instance of."""
        if is_name(instance, "self"):
            return self._tree.enclosing(instance, cst.ClassDef)
        made = self.construction(instance)
        return self._classes.local(made.func) if made is not None else None

    def declared_class(self, variable: Node) -> cst.ClassDef | None:
        """The class of this project that a parameter is annotated with, or that all known calls give an object of."""
        binding = self._names.definition(variable) if isinstance(variable, cst.Name) else None
        param = binding.node if binding is not None else None
        if not isinstance(param, cst.Param):
            return None
        if param.annotation is not None:
            return self._classes.local(param.annotation.annotation)
        return self.calls.class_given(param)

    def _of_statement(self, value: Node, attribute: str) -> Node | None:
        """The value that a statement assigns to a `self` attribute; None if it is not visible."""
        if isinstance(value, cst.Assign):
            return self._unpacked(value, f"self.{attribute}")
        return None if isinstance(value, (cst.AugAssign, cst.For, cst.WithItem)) else value

    def _bound_value(self, binding: Binding, name: str) -> Node | None:
        """The value that a binding gives a name; None if it is not visible."""
        if binding.how in ("assign", "with"):
            return binding.value
        if binding.how == "unpack" and isinstance(binding.node, cst.Assign):
            return self._unpacked(binding.node, name)
        return binding.node if binding.how == "param" else None

    def _unpacked(self, statement: cst.Assign, variable: str) -> Node | None:
        """The value of `variable` in `a, b = A(), B()`, `a, b = accelerator.prepare(a, b)` or `a, b = build()`."""
        for item in statement.targets:
            if not isinstance(item.target, (cst.Tuple, cst.List)):
                continue
            targets = [dotted(element.value) for element in item.target.elements]
            starred = any(isinstance(element, cst.StarredElement) for element in item.target.elements)
            if variable in targets and not starred:
                values = self._parts(statement.value)
                return values[targets.index(variable)] if len(values) == len(targets) else None
        return None

    def _parts(self, value: Node) -> list[Node]:
        """The values that an expression unpacks to, in order; empty if they are not visible."""
        if isinstance(value, cst.Call):
            returned = self._returned(value)
            return self.prepared(value) or (self._parts(returned) if isinstance(returned, cst.Tuple) else [])
        if isinstance(value, (cst.Tuple, cst.List)):
            starred = any(isinstance(element, cst.StarredElement) for element in value.elements)
            return [element.value for element in value.elements] if not starred else []
        return []

    def _returned(self, call: cst.Call) -> Node | None:
        """What a function of the project returns, unless that is being asked already: `first, rest = rest.split()`."""
        question = ("made", id(call))
        if not self._questions.open(question):
            return None
        try:
            return self.calls.returned(call)
        finally:
            self._questions.close(question)

    def _declared(self, node: Node) -> Kind | None:
        """The kind from the annotation of a variable or attribute."""
        if isinstance(node, cst.Name):
            statements = [binding.node for binding in self._names.bindings(node)]
            annotations = [found.annotation for found in statements if isinstance(found, cst.AnnAssign)]
        elif (name := attribute_of_self(node)) is not None:
            klass = self._tree.enclosing(node, cst.ClassDef)
            annotations = self._classes.annotations(klass, name) if klass is not None else []
        else:
            return None
        return self._annotated(annotations[0]) if len(annotations) == 1 else None

    def _tested(self, node: Node) -> Kind | None:
        """The kind that an enclosing `if isinstance(...)`, or an earlier `assert`, guarantees."""
        name = dotted(node)
        if name is None or name not in self._tests:
            return None
        for test in self._tests[name]:
            above = self._tree.parent[test]
            while isinstance(above, cst.BooleanOperation) and isinstance(above.operator, cst.And):
                above = self._tree.parent[above]
            if isinstance(above, cst.If):
                holds = self._tree.contains(above.body, node)
            else:
                holds = isinstance(above, cst.Assert) and above in self._tree.preceding(node)
            if holds:
                return self._typed(test.args[1].value)
        return None

    @cached_property
    def _tests(self) -> dict[str, list[cst.Call]]:
        """The `isinstance` calls, by the expression that they test."""
        found: dict[str, list[cst.Call]] = {}
        for call in self._tree.all(cst.Call):
            if isinstance(call.func, cst.Name) and call.func.value == "isinstance" and len(call.args) == 2:
                name = dotted(call.args[0].value)
                if name is not None:
                    found.setdefault(name, []).append(call)
        return found

    def _annotated(self, annotation: cst.Annotation | None) -> Kind | None:
        return self._typed(annotation.annotation) if annotation is not None else None

    def _typed(self, node: Node) -> Kind | None:
        """The kind that a type annotation stands for, `None` aside."""
        kinds = {self.instance(part) for part in self._type_parts(node) if not is_name(part, "None")}
        return kinds.pop() if len(kinds) == 1 else None

    def _type_parts(self, node: Node) -> list[Node]:
        """The members of a union; parses string annotations and unwraps `Optional` and the like."""
        if isinstance(node, cst.SimpleString):
            try:
                return self._type_parts(cst.parse_expression(str(evaluated(node))))
            except cst.ParserSyntaxError:
                return [node]
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return [*self._type_parts(node.left), *self._type_parts(node.right)]
        qualified = self._names.qualified(node.value) if isinstance(node, cst.Subscript) else None
        if (
            isinstance(node, cst.Subscript)
            and qualified is not None
            and vocabulary.TRANSPARENT.fullmatch(qualified)
        ):
            inner = [item.slice.value for item in node.slice if isinstance(item.slice, cst.Index)]
            inner = inner[:1] if qualified.endswith("Annotated") else inner
            return [part for value in inner for part in self._type_parts(value)]
        return [node]

    def path(self, node: Node) -> str | None:
        """As `dotted`, of the object that a local name is another name for, without the wrapper around a model.

        `model.fc` for `bare.fc` after `bare = model.module if hasattr(model, "module") else model`.
        """
        if isinstance(node, cst.Attribute):
            whole = self.path(node.value)
            if whole is None or (node.attr.value == "module" and whole != "self"):
                return whole
            return f"{whole}.{node.attr.value}"
        if not isinstance(node, cst.Name):
            return self._path_of_one(node)
        binding = self._names.definition(node)
        value = binding.value if binding is not None and binding.how == "assign" else None
        question = ("made", id(value))
        other = isinstance(value, (cst.Name, cst.Attribute, cst.IfExp, cst.Call))
        if value is None or not other or not self._questions.open(question):
            return node.value
        try:
            return self._path_of_one(value) or node.value
        finally:
            self._questions.close(question)

    def _path_of_one(self, node: Node) -> str | None:
        """The path of the one object that an expression stands for, whether its model is wrapped or not."""
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self.path(node)
        if isinstance(node, cst.IfExp):
            either, other = self._path_of_one(node.body), self._path_of_one(node.orelse)
            return either if either == other else None
        if (
            isinstance(node, cst.Call)
            and node.args
            and (
                self._names.qualified(node.func) == "builtins.getattr"
                and literal_text(node.args[1].value) == "module"
                if len(node.args) == 3
                else _method(node) == "unwrap_model"
            )
        ):
            return self._path_of_one(node.args[0].value)
        return None

    def is_setting(self, node: Node) -> bool:
        """Whether a value is what a constructor was given, or is read from it: `config.rate` and `config["rate"]` of its
        parameter `config`, kept on `self` or not.
        """
        for _ in range(_DEPTH):
            origin = self.origin(node)
            if isinstance(origin, cst.Param):
                function = self._tree.parent.get(self._tree.parent.get(origin, origin))
                is_init = isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
                return is_init and not is_name(origin.name, "self")
            read_from = self._read_from(origin)
            if read_from is None:
                return False
            node = read_from
        return False

    def _read_from(self, node: Node) -> Node | None:
        """The object or mapping that a value is read from."""
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            return node.value
        if not isinstance(node, cst.Call):
            return None
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("get", "pop"):
            return node.func.value
        called = self._names.qualified(node.func)
        plain = bool(node.args) and not node.args[0].star
        return node.args[0].value if plain and called in _READS else None

    def number(self, node: Node) -> float | None:
        """The number that an expression evaluates to: a literal, signed or not, or names that lead to one.

        A module constant bound once counts in every function of the file.
        """
        literal = self.origin(node)
        negative = False
        if isinstance(literal, cst.UnaryOperation) and isinstance(literal.operator, (cst.Minus, cst.Plus)):
            negative = isinstance(literal.operator, cst.Minus)
            literal = literal.expression
        if not isinstance(literal, (cst.Integer, cst.Float)):
            return None
        return -float(evaluated(literal)) if negative else float(evaluated(literal))

    def is_infinite(self, node: Node) -> bool:
        """Whether an expression is infinity: `float("inf")`, or the constant of math, numpy or torch."""
        value = self.origin(node)
        if (
            isinstance(value, cst.Call)
            and value.args
            and self._names.qualified(value.func) == "builtins.float"
        ):
            return (self.string(value.args[0].value) or "").lower() in ("inf", "infinity")
        return self._names.qualified(value) in _INFINITIES

    def boolean(self, node: Node) -> bool | None:
        """The `True` or `False` that an expression evaluates to, literal or through names; None for anything else."""
        literal = self.origin(node)
        if isinstance(literal, cst.Name) and literal.value in ("True", "False"):
            return literal.value == "True"
        return None

    def string(self, node: Node) -> str | None:
        """The string that an expression evaluates to: a literal, or names that lead to one."""
        literal = self.origin(node)
        if not isinstance(literal, (cst.SimpleString, cst.ConcatenatedString)):
            return None
        value = evaluated(literal)
        return value if isinstance(value, str) else None

    def is_optimizer(self, node: Node) -> bool:
        """Whether this is an optimizer, by kind, or by name if the kind is unknown."""
        if isinstance(node, cst.Subscript):  # optimizers[0]
            node = node.value
        kind = self.kind(node)
        name = dotted(node)
        return kind is Kind.OPTIMIZER or (
            kind is None and name is not None and _OPTIMIZER_NAME.search(name) is not None
        )

    def is_scaler(self, node: Node) -> bool:
        """Whether this is a gradient scaler, by kind, or by name if the kind is unknown."""
        kind = self.kind(node)
        name = dotted(node)
        return kind is Kind.SCALER or (kind is None and name is not None and "scaler" in name.lower())


def _method(call: cst.Call) -> str | None:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else None


def _dots(node: Node) -> int:
    """How many attributes are taken one after the other: 2 for `self.model.fc`."""
    dots = 0
    while isinstance(node, cst.Attribute):
        dots, node = dots + 1, node.value
    return dots
