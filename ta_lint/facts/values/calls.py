"""Calls of the project's functions: which function a call runs, where a function is called, and with which arguments."""

from collections.abc import Callable
from typing import NamedTuple

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.questions import Questions
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, argument, attribute_of_self, is_name

# If this file defines methods, a variable by one of these names is taken for the object that has them.
_OWNERS = ("trainer", "agent")
_SELVES = ("self", "cls")


class _CallsByName(NamedTuple):
    """The calls of a file by one name."""

    of_self: dict[cst.ClassDef, list[cst.Call]]
    """On `self`, by the family of the class."""
    of_objects: dict[cst.ClassDef, list[cst.Call]]
    """On objects, by their class."""
    open: dict[cst.Call, Node]
    """On objects, with these, whose class nobody has asked for, or is not known for good."""
    others: list[cst.Call]
    """Those that may run a method of any class."""


class Calls:
    """Queries about calls of functions and methods that this file defines, or another one of the project.

    `construction` returns the call that made an expression's value (`facts.kinds`); it is one of the `questions`.
    """

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        construction: Callable[[Node], cst.Call | None],
        questions: Questions,
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._construction = construction
        self._questions = questions
        self._by_name: dict[tuple[cst.Module, str], _CallsByName] = {}
        self._methods: dict[
            tuple[cst.Module, str], dict[cst.ClassDef, list[cst.FunctionDef]]
        ] = {}  # by family
        self._callees: dict[cst.Call, cst.FunctionDef | None] = {}
        self._functions: dict[cst.Module, dict[str, list[cst.FunctionDef]]] = {}  # of each file, by name
        self._sites: dict[cst.FunctionDef, list[cst.Call]] = {}
        self._possible: dict[cst.FunctionDef, list[Node]] = {}
        self._calls_of: dict[cst.Module, dict[str, list[cst.Call]]] = {}  # of each file, by name

    def functions(self, name: str, root: cst.Module | None = None) -> list[cst.FunctionDef]:
        """The functions and methods of this file with that name, or of the file with a root."""
        root = root if root is not None else self._tree.root
        if root not in self._functions:
            named = self._functions[root] = {}
            for function in self._tree.within(root, cst.FunctionDef):
                named.setdefault(function.name.value, []).append(function)
        return self._functions[root].get(name, [])

    def function(self, node: Node) -> cst.FunctionDef | None:
        """The function of the project that an expression stands for: by its name, as an attribute of an imported module, or as a
        method of `self` or of an object of a known class.
        """
        binding = self._names.defined_elsewhere(node)
        if binding is None and isinstance(node, cst.Name):
            bindings = self._names.bindings(node)
            binding = bindings[0] if len(bindings) == 1 else None
        if binding is not None:
            return binding.node if isinstance(binding.node, cst.FunctionDef) else None
        if not isinstance(node, cst.Attribute):
            return None
        klass = self._class_of(node.value)
        return self._classes.method(klass, node.attr.value) if klass is not None else None

    def sites(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a function: `step()`, `self.step()`, `trainer.step()` of a known trainer.

        They are in its file and in those that import it. The sites of `__init__` are the calls of its class.
        """
        if function in self._sites:
            return self._sites[function]
        question = ("sites", id(function))
        if not self._questions.open(question):  # the receiver may be returned by this very function
            return []
        try:
            name, owner = function.name.value, self._tree.home(function)
            found = [call for file in self._callers(function, name) for call in self._running(file, function)]
            if name == "__init__" and isinstance(owner, cst.ClassDef):
                files = self._callers(function, owner.name.value)
                made = [call for file in files for call in self._named(file, owner.name.value)]
                found += [call for call in made if self._classes.local(call.func) is owner]
        finally:
            self._questions.close(question)
        if self._questions.hold:
            self._sites[function] = found
        return found

    def possible_sites(self, function: cst.FunctionDef) -> list[Node]:
        """The places that may run a function, though that is not certain: calls of a method of its name by an object of unknown
        class, in all files of its programs, and mentions that hand the function on, as `model.apply(initialise)` does.
        """
        if function not in self._possible:
            name = function.name.value
            files = dict.fromkeys([self._tree.root_of(function), self._tree.root])
            if isinstance(self._tree.home(function), cst.ClassDef):
                files |= dict.fromkeys(self._names.beside(f".{name}(", around=function) or [])
                calls = [call for file in files for call in self._named(file, name)]
                found: list[Node] = [call for call in calls if self._may_run(call, function)]
            else:
                files |= dict.fromkeys(
                    self._names.importers(function) if self._tree.is_at_top(function) else []
                )
                found = [
                    arg.value
                    for file in files
                    for arg in self._tree.within(file, cst.Arg)
                    if is_name(arg.value, name) and self.function(arg.value) is function
                ]
            self._possible[function] = found
        return self._possible[function]

    def _may_run(self, call: cst.Call, method: cst.FunctionDef) -> bool:
        """Whether a call by the name of a method may run it, as nothing tells the class of its object."""
        if not isinstance(call.func, cst.Attribute) or self.runs(call, method):
            return False
        receiver = call.func.value
        is_known = is_name(receiver, "self") or is_name(receiver, "cls") or self._names.qualified(receiver)
        return not is_known and self._construction(receiver) is None and self._class_of(receiver) is None

    def _sites_of_lambda(self, function: cst.Lambda) -> list[cst.Call]:
        """The calls of a lambda by the one name, or attribute of `self`, that it is assigned to."""
        assign = self._tree.parent[function]
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        if isinstance(target, cst.Name):
            return [
                call
                for mention in self._names.mentions(target)
                if (call := self._called_by(mention)) is not None
                and (reaching := self._names.definition(mention)) is not None
                and reaching.value is function
            ]
        name = attribute_of_self(target) if target is not None else None
        klass = self._tree.enclosing(function, cst.ClassDef)
        if name is None or klass is None or self._classes.attribute(klass, name) != [function]:
            return []
        calls = self._tree.within(klass, cst.Call)
        return [call for call in calls if attribute_of_self(call.func) == name]

    def _called_by(self, function: Node) -> cst.Call | None:
        """The call of a function that a name mentions."""
        above = self._tree.parent[function]
        return above if isinstance(above, cst.Call) and above.func is function else None

    def _callers(self, function: cst.FunctionDef, name: str) -> list[cst.Module]:
        """The file that defines a function, this file, and those that import it or its class."""
        owner = self._tree.home(function)
        exported = owner if isinstance(owner, cst.ClassDef) else function
        importers = self._names.importers(exported, name) if self._tree.is_at_top(exported) else []
        return [*dict.fromkeys([self._tree.root_of(function), self._tree.root, *importers])]

    def _running(self, file: cst.Module, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a file that may run a function, in source order: only those are looked at whose receiver may have it."""
        name, owner = function.name.value, self._tree.home(function)
        if not isinstance(owner, cst.ClassDef) or file is not self._tree.root_of(function):
            return [call for call in self._named(file, name) if self.runs(call, function)]
        named = self._grouped(file, name)
        for call, receiver in [*named.open.items()]:
            klass = self._class_of(receiver)
            if self._questions.hold and named.open.pop(call, None) is not None and klass is not None:
                named.of_objects.setdefault(klass, []).append(call)
        may = [
            *named.others,
            *named.of_self.get(self._classes.family(owner), ()),
            *named.of_objects.get(owner, ()),
            *named.open,
        ]
        return [call for call in sorted(may, key=self._tree.order) if self.runs(call, function)]

    def _grouped(self, file: cst.Module, name: str) -> "_CallsByName":
        """The calls of a file by a name, by what they are called on."""
        key = file, name
        if key not in self._by_name:
            found = self._by_name[key] = _CallsByName({}, {}, {}, [])
            for call in self._named(file, name):
                receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
                if receiver is None or self._names.defined_elsewhere(call.func) is not None:
                    found.others.append(call)
                elif not isinstance(receiver, cst.Name) or receiver.value not in (*_SELVES, *_OWNERS):
                    found.open[call] = receiver
                elif receiver.value in _OWNERS:
                    found.others.append(call)
                elif (klass := self._tree.enclosing(call, cst.ClassDef)) is not None:
                    found.of_self.setdefault(self._classes.family(klass), []).append(call)
        return self._by_name[key]

    def _methods_of(self, klass: cst.ClassDef, name: str) -> list[cst.FunctionDef]:
        """The methods of this name in the file of a class that are of its family."""
        key = root, _ = self._tree.root_of(klass), name
        if key not in self._methods:
            found = self._methods[key] = {}
            for function in self.functions(name, root):
                if isinstance(owner := self._tree.home(function), cst.ClassDef):
                    found.setdefault(self._classes.family(owner), []).append(function)
        return self._methods[key].get(self._classes.family(klass), [])

    def _named(self, file: cst.Module, name: str) -> list[cst.Call]:
        """The calls of a file by the last name of what is called."""
        if file not in self._calls_of:
            calls = self._calls_of[file] = {}
            for call in self._tree.within(file, cst.Call):
                if (called := called_name(call)) is not None:
                    calls.setdefault(called, []).append(call)
        return self._calls_of[file].get(name, [])

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of the project that a call runs; None if it is unknown or ambiguous."""
        if call in self._callees:
            return self._callees[call]
        found = self._callee(call)
        if self._questions.hold:
            self._callees[call] = found
        return found

    def _callee(self, call: cst.Call) -> cst.FunctionDef | None:
        found = [
            function for function in self.functions(called_name(call) or "") if self.runs(call, function)
        ]
        called = found[0] if len(found) == 1 else self._called(call.func) if not found else None
        # `self.head(x)` calls what the property `head` returns
        return called if called is None or not self._classes.is_property(called) else None

    def _called(self, callee: Node) -> cst.FunctionDef | None:
        """The function that an expression is, or the `__call__` of the object that it is."""
        if (function := self.function(callee)) is not None:
            return function
        klass = self._class_of(callee)
        return None if klass is None else self._classes.method(klass, "__call__")

    def _class_of(self, receiver: Node) -> cst.ClassDef | None:
        """The class of the project that an object is an instance of."""
        if isinstance(receiver, cst.Name) and receiver.value in _SELVES:
            return self._tree.enclosing(receiver, cst.ClassDef)
        made = self._construction(receiver)
        if made is None:
            return self._class_of_given(receiver)
        return self._classes.local(made.func)

    def _class_of_given(self, receiver: Node) -> cst.ClassDef | None:
        binding = self._names.definition(receiver) if isinstance(receiver, cst.Name) else None
        param = binding.node if binding is not None else None
        return self.class_given(param) if isinstance(param, cst.Param) else None

    def class_given(self, param: cst.Param) -> cst.ClassDef | None:
        """The one class of the project that all known calls give a parameter an object of."""
        question = ("class", id(param))
        if not self._questions.open(question):
            return None
        try:
            made = [self._construction(value) for value in self.given(param) or ()]
        finally:
            self._questions.close(question)
        found = {self._classes.local(call.func) if call is not None else None for call in made}
        return found.pop() if len(found) == 1 else None

    def runs(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a call may run a function of this file."""
        owner = self._tree.home(function)
        if isinstance(call.func, cst.Name) and any(
            binding.node is function for binding in self._names.bindings(call.func)
        ):
            return True
        if (binding := self._names.defined_elsewhere(call.func)) is not None:
            return binding.node is function
        if not isinstance(call.func, cst.Attribute) or not isinstance(owner, cst.ClassDef):
            return False
        if call.func.attr.value != function.name.value:
            return False
        receiver = call.func.value
        if isinstance(receiver, cst.Name) and receiver.value in _SELVES:
            klass = self._tree.enclosing(call, cst.ClassDef)
            return klass is not None and self._classes.related(klass, owner)
        if isinstance(receiver, cst.Name) and receiver.value in _OWNERS:
            return True
        return self._class_of(receiver) is owner

    def meant(self, attribute: cst.Attribute) -> list[cst.FunctionDef]:
        """The functions of the project that an attribute may refer to: what another file defines, else the methods of its own
        file by name, unless its object rules them out.

        An imported module and an instance of an external class rule out all of them.
        """
        root = self._tree.root_of(attribute)
        named = [
            function
            for function in self.functions(attribute.attr.value, root)
            if isinstance(self._tree.home(function), cst.ClassDef)
        ]
        if f"def {attribute.attr.value}" in self._names.attributes_of(root):
            elsewhere = self.function(attribute)
            if elsewhere is not None and self._tree.root_of(elsewhere) is not root:
                return [elsewhere]
        if not named or self._names.qualified(attribute.value) is not None:
            return []
        receiver = attribute.value
        if isinstance(receiver, cst.Name) and receiver.value in _SELVES:
            klass = self._tree.enclosing(attribute, cst.ClassDef)
        else:
            made = self._construction(receiver)
            klass = self._classes.local(made.func) if made is not None else None
            if made is not None and klass is None and self._is_foreign_class(made.func):
                return []
        if klass is None:
            return named
        alike = self._methods_of(klass, attribute.attr.value) if self._tree.root_of(klass) is root else named
        owners = ((function, self._tree.home(function)) for function in alike)
        own = [
            function
            for function, owner in owners
            if isinstance(owner, cst.ClassDef) and self._classes.related(klass, owner)
        ]
        return own or named

    def _is_foreign_class(self, constructor: Node) -> bool:
        called = self._names.qualified(constructor)
        return called is not None and called.rpartition(".")[2][:1].isupper()

    def given(self, param: cst.Param) -> list[Node] | None:
        """The values that calls in this file pass for a parameter, its default where they pass none.

        None if no call is found, a call spreads `*args`, or an argument cannot be matched to the parameter.
        """
        function = self._function_of(param)
        place = self.place(function, param) if function is not None else None
        if function is None or place is None:
            return None
        found: list[Node] = []
        sites = self._sites_of_lambda(function) if isinstance(function, cst.Lambda) else self.sites(function)
        for call in sites:
            if any(arg.star for arg in call.args):
                return None
            value = argument(call, param.name.value, place if place >= 0 else None) or param.default
            if value is None:
                return None
            found.append(value)
        return found or None

    def rules_out(self, call: cst.Call, function: cst.FunctionDef, node: Node) -> bool:
        """Whether a node of a function does not run in a call that sets a condition around it: `run(model, training=False)`."""
        conditions = self._tree.conditions(node)
        if not conditions or any(arg.star for arg in call.args):
            return False
        given = self.arguments(call, function)
        params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
        values = {param.name.value: given.get(param, param.default) for param in params}
        return any(
            is_name(values.get(setting), "False" if outcome else "True")
            for setting, outcome in conditions.items()
        )

    def arguments(self, call: cst.Call, function: cst.FunctionDef) -> dict[cst.Param, cst.BaseExpression]:
        """What a call gives to the parameters of the function that it runs, without those whose argument is unknown."""
        if any(arg.star == "*" for arg in call.args):
            return {}
        found: dict[cst.Param, cst.BaseExpression] = {}
        params = function.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            place = self.place(function, param)
            if place is None or (place < 0 and param not in params.kwonly_params):
                continue  # `self`
            value = argument(call, param.name.value, place if place >= 0 else None)
            if value is not None:
                found[param] = value
        return found

    def _function_of(self, param: cst.Param) -> cst.FunctionDef | cst.Lambda | None:
        above = self._tree.parent.get(self._tree.parent.get(param, param))
        return above if isinstance(above, FUNCTIONS) else None

    def place(self, function: cst.FunctionDef | cst.Lambda, param: cst.Param) -> int | None:
        """The index of a parameter among the positional arguments, -1 if it is keyword-only."""
        params = function.params
        if param in params.kwonly_params:
            return -1
        positional = [*params.posonly_params, *params.params]
        if param not in positional:
            return None
        if isinstance(function, cst.Lambda):
            return positional.index(param)
        bound = isinstance(self._tree.home(function), cst.ClassDef) and not any(
            isinstance(item.decorator, cst.Name) and item.decorator.value == "staticmethod"
            for item in function.decorators
        )
        return positional.index(param) - bound

    def first_rest(self, function: cst.FunctionDef | cst.Lambda) -> int:
        """The index, among the positional arguments of a call, of the first that goes into `*args`."""
        positional = [*function.params.posonly_params, *function.params.params]
        return (self.place(function, positional[-1]) or 0) + 1 if positional else 0

    def returned(self, call: cst.Call) -> Node | None:
        """The value that a called function of the project returns: that of its only `return`, or the body of a lambda.

        None for generators, coroutines and decorated functions, and for functions that may end without that `return`.
        """
        if (short := self._lambda(call)) is not None:
            return short.body
        function = self.callee(call)
        if function is None or function.asynchronous is not None or function.decorators:
            return None
        if self._tree.own(function, cst.Yield):
            return None
        returns = self._tree.own(function, cst.Return)
        return returns[0].value if len(returns) == 1 else None

    def _lambda(self, call: cst.Call) -> cst.Lambda | None:
        """The lambda that a call by a local name runs."""
        reaching = self._names.definition(call.func) if isinstance(call.func, cst.Name) else None
        value = reaching.value if reaching is not None and reaching.how == "assign" else None
        return value if isinstance(value, cst.Lambda) else None


def called_name(call: cst.Call) -> str | None:
    """The last name of the callee: `step` for `self.optimizer.step()`, `train` for `train()`."""
    function = call.func
    if type(function) is cst.Attribute:  # isinstance on an abstract class takes three times as long
        return function.attr.value
    return function.value if type(function) is cst.Name else None
