"""The calls that run in one iteration of a loop, helpers included: they set modes, call models and go backward.

Variables are followed into the functions of the project that receive them, so `evaluate(net)` with `model.eval()` inside sets
the mode of `net`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts.loops.loops import BACKWARD
from ta_lint.facts.values.calls import Calls, called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.tree import Node, Tree, argument, dotted

_CALLS_DEEP = 6
_MOST_CALLS = 2000  # of one region; one with more is followed less deep
_CALLERS_DEEP = 4
_ALIASES_DEEP = 6

# Methods that modules have and hardly anything else does: whatever they are called on is taken for a module.
_OF_MODULES = frozenset(
    "eval load_state_dict named_parameters parameters requires_grad_ state_dict train zero_grad".split()
)

# Functions that return the model inside a wrapper of it.
_UNWRAPS = regex(r"_?(unwrap|de_?parallel|get_raw)_?(model|ddp|module)?|extract_model_from_parallel")

Variable = tuple[object, ...]
"""The object that an expression means: what first binds it, then the names of attributes. Equal ones mean the same object."""


@dataclass(frozen=True, eq=False)
class LoopCall:
    """A call that runs in a region, in its own code or in a function of the project that it calls.

    `action` is a change of mode or a backward pass, None for any other call. `subject` is the variable that is called, or on
    which a method is called; `given` are the variables among the arguments; `via` are the calls that lead from the region to
    this one.
    """

    action: Action | None
    call: cst.Call
    subject: Variable | None
    given: tuple[Variable, ...]
    via: tuple[cst.Call, ...]

    @property
    def place(self) -> cst.Call:
        """The call in the region's own code that leads to this one, or is it."""
        return self.via[0] if self.via else self.call


class CallsInLoop:
    """The calls that run in a region, and which variables mean the same object."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, calls: Calls) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._calls = calls
        self._events: dict[Node, list[LoopCall]] = {}
        self._own_events: dict[cst.Call, LoopCall] = {}
        self._variables: dict[Node, Variable | None] = {}
        self._model_names: dict[cst.Module, set[str]] = {}

    def events(self, region: Node) -> list[LoopCall]:
        """The calls in a region's own code and in the functions of the project that it calls, in the order of the source."""
        if region not in self._events:
            found: list[LoopCall] = []
            for depth in range(_CALLS_DEEP, 0, -2):
                found = list(islice(self._walk(region, {}, (), (), depth), _MOST_CALLS))
                if len(found) < _MOST_CALLS:
                    break
            self._events[region] = found
        return self._events[region]

    def _walk(
        self,
        region: Node,
        known: dict[Node, Variable | None],
        via: tuple[cst.Call, ...],
        entered: tuple[cst.FunctionDef, ...],
        depth: int,
    ) -> Iterator[LoopCall]:
        for call in self._tree.own(region, cst.Call):
            function = self._calls.callee(call) if not self.is_mode(call) else None
            if function is None:
                yield self._event(call, known, via) if via else self._own_event(call)
            elif len(via) < depth and function not in entered and not self._tree.contains(function, region):
                inner = known | self._handed_over(call, function, known)
                yield from self._walk(function.body, inner, (*via, call), (*entered, function), depth)

    def _own_event(self, call: cst.Call) -> LoopCall:
        """A call seen from the region whose own code it is in: the same for every such region."""
        if call not in self._own_events:
            self._own_events[call] = self._event(call, {}, ())
        return self._own_events[call]

    def _event(
        self, call: cst.Call, known: dict[Node, Variable | None], via: tuple[cst.Call, ...]
    ) -> LoopCall:
        name = called_name(call)
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        given = [self._variable(arg.value, known, _ALIASES_DEEP) for arg in call.args]
        found = tuple(variable for variable in given if variable is not None)
        if name in BACKWARD and isinstance(call.func, cst.Attribute):
            return LoopCall(Action.BACKWARD, call, None, found, via)
        action = self.mode(call) if self.is_mode(call) else None
        if action is None:
            receiver = self.called(call)
        return LoopCall(action, call, self._variable(receiver, known, _ALIASES_DEEP), found, via)

    # -- modes ------------------------------------------------------------------------------------------------

    def is_mode(self, call: cst.Call) -> bool:
        """Whether a call sets the mode of a module: `eval()`, `train()`, `train(False)`, and no method of this file."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("train", "eval"):
            return False
        kind = self._kinds.kind(call.func.value)
        if kind not in (Kind.MODULE, None) or self._names.qualified(call.func):
            return False
        if kind is None and self._calls.callee(call) is not None:
            return False
        if call.func.attr.value == "eval":
            return not call.args
        if len(call.args) > 1 or any(arg.star for arg in call.args):
            return False
        given = argument(call, "mode", 0)
        return not call.args or (
            given is not None
            and (isinstance(given, (cst.Comparison, cst.UnaryOperation)) or dotted(given) is not None)
        )

    def mode(self, call: cst.Call) -> Action:
        """The mode that such a call sets: `TRAIN`, `EVAL`, or `MODE` where the code computes it."""
        if called_name(call) == "eval":
            return Action.EVAL
        given = argument(call, "mode", 0)
        if given is None or (isinstance(given, cst.Name) and given.value == "True"):
            return Action.TRAIN
        return Action.EVAL if isinstance(given, cst.Name) and given.value == "False" else Action.MODE

    def called(self, call: cst.Call) -> cst.BaseExpression:
        """What is called: `model` in `model(x)` and in `model.forward(x)`."""
        called = call.func
        return (
            called.value if isinstance(called, cst.Attribute) and called.attr.value == "forward" else called
        )

    def acts_as_model(self, node: Node) -> bool:
        """Whether an expression is a module: by its kind, or, if that is unknown, by the methods that its file, or that of the
        callers who give it, calls on it.
        """
        kind = self._kinds.kind(node)
        if kind is not None:
            return kind is Kind.MODULE
        if self._has_methods_of_models(node):
            return True
        return any(self._has_methods_of_models(value) for value in self.values(node) if value is not node)

    def _has_methods_of_models(self, node: Node) -> bool:
        """Whether the file of an expression calls methods of models on what it spells like that."""
        name = dotted(node)
        if name is None:
            return False
        root = self._tree.root_of(node)
        if root not in self._model_names:
            attributes = self._tree.within(root, cst.Attribute)
            receivers = (dotted(found.value) for found in attributes if found.attr.value in _OF_MODULES)
            self._model_names[root] = {receiver for receiver in receivers if receiver is not None}
        return name in self._model_names[root]

    # -- variables --------------------------------------------------------------------------------------------

    def variable(self, node: Node) -> Variable | None:
        """The object that an expression means; None unless it certainly means the same one every time."""
        if node not in self._variables:
            self._variables[node] = self._variable(node, {}, _ALIASES_DEEP)
        return self._variables[node]

    def _variable(self, node: Node, known: dict[Node, Variable | None], depth: int) -> Variable | None:
        if depth == 0:
            return None
        if isinstance(node, cst.Attribute):
            base = self._variable(node.value, known, depth - 1)
            return base if base is None or node.attr.value == "module" else (*base, node.attr.value)
        if isinstance(node, cst.Call):
            return self._unwrapped(node, known, depth)
        return self._named(node, known, depth) if isinstance(node, cst.Name) else None

    def _named(self, name: cst.Name, known: dict[Node, Variable | None], depth: int) -> Variable | None:
        bindings = self._names.bindings(name)
        if name.value == "self" and len(bindings) == 1 and bindings[0].how == "param":
            klass = self._tree.enclosing(bindings[0].node, cst.ClassDef)
            return (klass,) if klass is not None else None
        for binding in bindings:
            if binding.how == "param" and binding.node in known:
                return known[binding.node]
        if not bindings or any(binding.how in ("for", "other") for binding in bindings):
            return None
        first = bindings[0]
        starts = [binding for binding in bindings if not self._goes_on(binding, name.value)]
        if len(starts) == 1 and starts[0].how == "assign" and starts[0].value is not None:
            alias = self._variable(starts[0].value, known, depth - 1)
            if alias is not None:
                return alias
        return (first.node, name.value)

    def _goes_on(self, binding: Binding, name: str) -> bool:
        """Whether a variable is bound to its old value, moved or wrapped: `model = DataParallel(model)`."""
        call = binding.value
        if binding.how != "assign" or not isinstance(call, cst.Call):
            return False
        receiver = [call.func.value] if isinstance(call.func, cst.Attribute) else []
        return any(dotted(part) == name for part in [*receiver, *(arg.value for arg in call.args)])

    def _unwrapped(self, call: cst.Call, known: dict[Node, Variable | None], depth: int) -> Variable | None:
        """The variable that a call returns: `model` of `DataParallel(model)`, `unwrap_model(model)` and `model.to(device)`."""
        if called_name(call) == "deepcopy" or called_name(call) == "copy":
            return None
        inner = self._kinds.handed_on(call)
        if inner is None and call.args and _UNWRAPS.fullmatch(called_name(call) or ""):
            inner = call.args[0].value
        return self._variable(inner, known, depth - 1) if inner is not None else None

    def _handed_over(
        self, call: cst.Call, function: cst.FunctionDef, known: dict[Node, Variable | None]
    ) -> dict[Node, Variable | None]:
        """The variables that one call of a function gives to its parameters."""
        params = function.params
        given = self._calls.arguments(call, function)
        return {
            param: self._variable(given[param], known, _ALIASES_DEEP) if param in given else None
            for param in (*params.posonly_params, *params.params, *params.kwonly_params)
            if param in given or param.name.value not in ("self", "cls")
        }

    def meanings(self, variable: Variable, depth: int = _CALLERS_DEEP) -> list[Variable]:
        """A variable and the variables that it gets its value from.

        Those of a parameter are what its callers give to it; an attribute may be a parameter of a method: `self.net = net`.
        """
        found = [variable]
        if depth and isinstance(variable[0], cst.ClassDef) and len(variable) > 1:
            values = self._classes.attribute(variable[0], str(variable[1]))
            kept = self.variable(values[0]) if len(values) == 1 else None
            if kept is not None and isinstance(kept[0], cst.Param):
                found += self.meanings((*kept, *variable[2:]), depth - 1)
        if depth and isinstance(variable[0], cst.Param):
            for value in self._calls.given(variable[0]) or []:
                if (outer := self.variable(value)) is not None:
                    found += [(*meaning, *variable[2:]) for meaning in self.meanings(outer, depth - 1)]
        return found

    def values(self, node: Node, depth: int = _CALLERS_DEEP) -> list[Node]:
        """The expressions that a value may come from, followed through parameters of functions of the project."""
        origin = self._kinds.origin(node)
        if not depth or not isinstance(origin, cst.Param):
            return [node]
        given = self._calls.given(origin) or [node]
        return [
            value for one in given for value in (self.values(one, depth - 1) if one is not node else [one])
        ]

    def sites(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a function from outside it."""
        return [site for site in self._calls.sites(function) if not self._tree.contains(function, site)]
