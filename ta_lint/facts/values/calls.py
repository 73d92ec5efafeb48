"""Calls of the functions of a file: which function a call runs, from where a function is called, what it is given."""

from collections.abc import Callable

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument

# A variable by one of these names is the object whose methods this file defines, if any.
_OWNERS = ("trainer", "agent")


class Calls:
    """Queries about calls of functions and methods that this file defines.

    `construction` says which call made the value of an expression (`facts.kinds`).
    """

    def __init__(
        self, tree: Tree, names: Names, classes: Classes, construction: Callable[[Node], cst.Call | None]
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._construction = construction
        self._functions: dict[str, list[cst.FunctionDef]] = {}
        self._by_name: dict[str, list[cst.Call]] = {}
        self._sites: dict[cst.FunctionDef, list[cst.Call]] = {}
        for function in tree.all(cst.FunctionDef):
            self._functions.setdefault(function.name.value, []).append(function)
        for call in tree.all(cst.Call):
            if (name := called_name(call)) is not None:
                self._by_name.setdefault(name, []).append(call)

    def functions(self, name: str) -> list[cst.FunctionDef]:
        """The functions and methods of this file by that name."""
        return self._functions.get(name, [])

    def sites(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a function in this file: `step()`, `self.step()`, `trainer.step()` of a known trainer.

        The sites of a class's `__init__` are the calls of the class.
        """
        if function not in self._sites:
            self._sites[function] = []  # a receiver may come out of the function itself
            name, owner = function.name.value, self._tree.home(function)
            called = self._by_name.get(name, [])
            found = [call for call in called if self.runs(call, function)]
            if name == "__init__" and isinstance(owner, cst.ClassDef):
                made = self._by_name.get(owner.name.value, [])
                found += [call for call in made if self._classes.local(call.func) is owner]
            self._sites[function] = found
        return self._sites[function]

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call runs, None where several may, or none is known."""
        found = [
            function for function in self.functions(called_name(call) or "") if self.runs(call, function)
        ]
        return found[0] if len(found) == 1 else None

    def runs(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a call may run a function of this file."""
        owner = self._tree.home(function)
        if isinstance(call.func, cst.Name):
            return any(binding.node is function for binding in self._names.bindings(call.func))
        if not isinstance(call.func, cst.Attribute) or not isinstance(owner, cst.ClassDef):
            return False
        if call.func.attr.value != function.name.value:
            return False
        receiver = call.func.value
        if isinstance(receiver, cst.Name) and receiver.value in ("self", "cls"):
            klass = self._tree.enclosing(call, cst.ClassDef)
            return klass is not None and self._classes.related(klass, owner)
        if isinstance(receiver, cst.Name) and receiver.value in _OWNERS:
            return True
        made = self._construction(receiver)
        return made is not None and self._classes.local(made.func) is owner

    def meant(self, attribute: cst.Attribute) -> list[cst.FunctionDef]:
        """The methods of this file that an attribute may stand for: by name, as far as its object says no more.

        An imported module, and an instance of a class of another file, have none of them.
        """
        named = [
            function
            for function in self.functions(attribute.attr.value)
            if isinstance(self._tree.home(function), cst.ClassDef)
        ]
        if not named or self._names.qualified(attribute.value) is not None:
            return []
        receiver = attribute.value
        if isinstance(receiver, cst.Name) and receiver.value in ("self", "cls"):
            klass = self._tree.enclosing(attribute, cst.ClassDef)
        else:
            made = self._construction(receiver)
            klass = self._classes.local(made.func) if made is not None else None
            if made is not None and klass is None and self._is_foreign_class(made.func):
                return []
        if klass is None:
            return named
        owners = ((function, self._tree.home(function)) for function in named)
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
        """What the calls in this file give to a parameter, its default where they give nothing.

        None where no call is seen, one of them spreads `*args`, or there is no telling which parameter it is.
        """
        function = self._function_of(param)
        place = self._place(function, param) if function is not None else None
        if function is None or place is None:
            return None
        found: list[Node] = []
        for call in self.sites(function):
            if any(arg.star for arg in call.args):
                return None
            value = argument(call, param.name.value, place if place >= 0 else None) or param.default
            if value is None:
                return None
            found.append(value)
        return found or None

    def _function_of(self, param: cst.Param) -> cst.FunctionDef | None:
        above = self._tree.parent.get(self._tree.parent.get(param, param))
        return above if isinstance(above, cst.FunctionDef) else None

    def _place(self, function: cst.FunctionDef, param: cst.Param) -> int | None:
        """The position of a parameter among a call's arguments, -1 if it is given by keyword alone."""
        params = function.params
        if param in params.kwonly_params:
            return -1
        positional = [*params.posonly_params, *params.params]
        if param not in positional:
            return None
        bound = isinstance(self._tree.home(function), cst.ClassDef) and not any(
            isinstance(item.decorator, cst.Name) and item.decorator.value == "staticmethod"
            for item in function.decorators
        )
        return positional.index(param) - bound

    def returned(self, call: cst.Call) -> Node | None:
        """What the function of this file that a call runs returns: the value of its only `return`.

        None for a generator, a coroutine, a decorated function, and one that may end without it.
        """
        function = self.callee(call)
        if function is None or function.asynchronous is not None or function.decorators:
            return None
        if self._tree.own(function, cst.Yield):
            return None
        returns = self._tree.own(function, cst.Return)
        return returns[0].value if len(returns) == 1 else None


def called_name(call: cst.Call) -> str | None:
    """The last name of what is called: `step` for `self.optimizer.step()`, `train` for `train()`."""
    function = call.func
    if (
        type(function) is cst.Attribute
    ):  # asking an abstract class, as isinstance would, takes three times as long
        return function.attr.value
    return function.value if type(function) is cst.Name else None
