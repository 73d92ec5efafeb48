"""Calls after which ranks of a distributed run agree on a value: they reduce, gather or send it."""

import re

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Tree

_CALLS_DEEP = 3

# By name, whoever defines them: helpers around collectives are everywhere, and a wrong guess only makes a check silent.
_AGREES = regex(
    r"\w*(reduce|gather|broadcast|sync|consensus|agree|across|all_ranks|distributed_(mean|sum|avg))\w*|"
    r"check_trigger|allmean|average_(over|tensor|loss|value|metric)\w*|dist_(mean|sum|avg|max|min|any|all)",
    re.IGNORECASE,
)
# Of the same name, and of one process.
_OF_ONE_PROCESS = regex(r"(torch(?!\.distributed)|numpy|functools|itertools|math|builtins)\..*")
_IN_PLACE = regex(r"torch\.distributed\.\w+")


class Agreeing:
    """Which calls make ranks agree, themselves or in the functions of the project that they run."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._known: dict[cst.FunctionDef, bool] = {}

    def does(self, call: cst.Call) -> bool:
        """Whether a call makes ranks agree on what it is given, or on what it returns."""
        if self.is_named(call):
            return True
        function = self.function(call)
        return function is not None and self._runs_one(function, _CALLS_DEEP)

    def function(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of the project that a call runs, or `__call__` of the object that is called."""
        found = self._kinds.calls.callee(call)
        if found is not None or not isinstance(call.func, (cst.Name, cst.Attribute)):
            return found
        made = self._kinds.construction(call.func)
        klass = self._classes.local(made.func) if made is not None else None
        return self._classes.method(klass, "__call__") if klass is not None else None

    def is_named(self, call: cst.Call) -> bool:
        """Whether the call itself is one, by its name."""
        name = called_name(call)
        if name is None or _AGREES.fullmatch(name) is None:
            return False
        return _OF_ONE_PROCESS.fullmatch(self._names.qualified(call.func) or "") is None

    def is_in_place(self, call: cst.Call) -> bool:
        """Whether a call that makes ranks agree writes into its arguments: `dist.all_reduce(total)`, or one without a result."""
        if _IN_PLACE.fullmatch(self._names.qualified(call.func) or ""):
            return True
        return isinstance(self._tree.parent.get(call), cst.Expr)

    def _runs_one(self, function: cst.FunctionDef, depth: int) -> bool:
        if function not in self._known:
            self._known[function] = False  # a function that calls itself adds nothing
            self._known[function] = any(
                self.is_named(call)
                or (
                    depth > 0
                    and (inner := self.function(call)) is not None
                    and self._runs_one(inner, depth - 1)
                )
                for call in self._tree.within(function, cst.Call)
            )
        return self._known[function]
