"""The activation that produced an expression: softmax, sigmoid, their logarithms, none, or unknown."""

from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name, whole_index

_DEPTH = 8

NO_LOGARITHMS = frozenset({"softmax", "sigmoid", "relu", "tanh", "linear"})
"""Activations whose output is no logarithm of probabilities."""

_FUNCTION = regex(
    r"torch\.(?:nn\.functional\.|special\.)?(softmax|log_softmax|sigmoid|logsigmoid|expit|relu|tanh|linear)"
)
_LAYER = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.Softmax2d": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.LogSigmoid": "logsigmoid",
    "torch.nn.ReLU": "relu",
    "torch.nn.Tanh": "tanh",
    "torch.nn.Linear": "linear",
    "torch.nn.Conv1d": "linear",
    "torch.nn.Conv2d": "linear",
    "torch.nn.Conv3d": "linear",
}

# Tensor methods that change shape, order or precision, but not the values.
_SAME_VALUES = frozenset(
    "clone contiguous cpu cuda detach double expand flatten float half movedim permute requires_grad_ reshape squeeze "
    "swapaxes to transpose unflatten unsqueeze view view_as".split()
)

# What takes some values out of a tensor.
_PICKING = frozenset({"gather", "index_select", "masked_select", "select", "take_along_dim"})
_PICKS = frozenset(f"torch.{name}" for name in _PICKING)

_ZEROS = frozenset({"torch.zeros", "torch.zeros_like"})

# Methods that change the layers in a container.
_CHANGES = frozenset("add_module append extend insert pop register_module".split())


@dataclass(frozen=True)
class _Part:
    """One of a module's return values: by index, as in `model(x)[1]`, or of `count`, as in `_, y = model(x)`."""

    index: int
    count: int | None = None

    def of(self, returned: Node) -> Node | None:
        """The matching element of a tuple; None where the element is uncertain."""
        if not isinstance(returned, cst.Tuple):
            return None
        values = returned.elements
        if any(isinstance(value, cst.StarredElement) for value in values):
            return None
        fits = self.count in (None, len(values)) and -len(values) <= self.index < len(values)
        return values[self.index].value if fits else None


@dataclass(frozen=True, eq=False)
class Activation:
    """An activation by its functional name, and the expression that applies it or makes its layer.

    `linear` is the output of a linear layer or a convolution with no activation after it.
    """

    name: str
    node: Node

    @property
    def is_of(self) -> str:
        """The output as a message describes it."""
        return "a layer without activation" if self.name == "linear" else f"`{self.name}`"


class Activations:
    """Traces activations through assignments, views, layers, `nn.Sequential` and `forward` methods of this file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds

    def of(self, node: Node, depth: int = _DEPTH) -> Activation | None:
        """The activation whose output an expression certainly is."""
        origin = self._values(node)
        if depth == 0:
            return None
        part = self._part(origin)
        if part is not None:
            return self._of_module(part[0].func, depth - 1, part[1])
        if isinstance(origin, cst.Param):
            return self._of_given(origin, depth - 1)
        if not isinstance(origin, cst.Call):
            return None
        called = self._names.qualified(origin.func)
        if called is not None:
            function = _FUNCTION.fullmatch(called)
            return Activation(function[1].replace("expit", "sigmoid"), origin) if function else None
        if (name := self._tensor_method(origin)) is not None:
            return Activation(name, origin)
        return self._of_module(origin.func, depth - 1)

    def _of_given(self, param: cst.Param, depth: int) -> Activation | None:
        """The activation whose output all known calls give to a parameter."""
        found = [self.of(value, depth) for value in self._kinds.calls.given(param) or ()]
        same = len({activation.name if activation is not None else None for activation in found}) == 1
        return found[0] if same else None

    def picked(self, node: Node) -> Activation | None:
        """The activation of which an expression certainly is some of the outputs: by `gather`, or by a product with a one-hot
        tensor that is summed up.
        """
        origin = self._values(node)
        if not isinstance(origin, cst.Call):
            return self.of(origin)
        called = self._names.qualified(origin.func)
        tensor = _first_operand(origin) if called in _PICKS else _receiver(origin, _PICKING)
        if tensor is not None:
            return self.of(tensor)
        summed = _first_operand(origin) if called == "torch.sum" else _receiver(origin, frozenset({"sum"}))
        factors = self._factors(self._values(summed)) if summed is not None else []
        for one, other in (factors, factors[::-1]) if len(factors) == 2 else ():
            if self._is_one_hot(one):
                return self.of(other)
        return self.of(origin)

    def _factors(self, node: Node) -> list[Node]:
        """`a` and `b` of `a * b`, `torch.mul(a, b)` and `a.mul(b)`."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            return [node.left, node.right]
        if not isinstance(node, cst.Call):
            return []
        given: list[Node] = [arg.value for arg in node.args]
        if self._names.qualified(node.func) == "torch.mul":
            return given
        receiver = _receiver(node, frozenset({"mul"}))
        return [receiver, *given] if receiver is not None else []

    def _is_one_hot(self, node: Node) -> bool:
        """Whether a tensor certainly has a single 1 in each row, and 0 elsewhere."""
        origin = self._values(node)
        if isinstance(origin, cst.Subscript):
            origin = self._values(origin.value)
        if not isinstance(origin, cst.Call):
            return False
        if self._names.qualified(origin.func) in ("torch.nn.functional.one_hot", "torch.eye"):
            return True
        into = _receiver(origin, frozenset({"scatter", "scatter_"}))
        made = self._values(into) if into is not None else None
        value = argument(origin, "value", 2)
        zeros = isinstance(made, cst.Call) and self._names.qualified(made.func) in _ZEROS
        return zeros and value is not None and self._kinds.number(value) == 1

    def applied_to(self, activation: Activation, value: Node) -> cst.BaseExpression | None:
        """The argument of an activation, if only `value` uses its result.

        None for a layer, whose input is elsewhere, and where other code uses the result too.
        """
        call = activation.node
        alone = self._tree.contains(value, call)
        if isinstance(value, cst.Name) and (bound := self._names.definition(value)) is not None:
            alone = bound.value is call and len(self._names.mentions(value)) == 2
        if not alone or not isinstance(call, cst.Call):
            return None
        called = self._names.qualified(call.func)
        if called is not None:
            return argument(call, "input", 0) if _FUNCTION.fullmatch(called) else None
        return call.func.value if isinstance(call.func, cst.Attribute) and self._tensor_method(call) else None

    def _values(self, node: Node) -> Node:
        """The expression that a tensor's values come from, looking through views."""
        for _ in range(_DEPTH):
            node = self._kinds.origin(node)
            if isinstance(node, cst.Subscript) and self._part(node) is None:
                node = node.value
            elif (receiver := _receiver(node, _SAME_VALUES)) is not None:
                node = receiver
            else:
                return node
        return node

    def _part(self, node: Node) -> tuple[cst.Call, _Part] | None:
        """For one of several returned values: the call, and which of its values the expression is."""
        if isinstance(node, cst.Subscript):
            index, whole = whole_index(node), self._kinds.origin(node.value)
            if index is None or not isinstance(whole, cst.Call) or not self._returns_several(whole):
                return None
            return whole, _Part(index)
        bound = self._names.definition(node) if isinstance(node, cst.Name) else None
        if bound is None or bound.how != "unpack" or not isinstance(bound.value, cst.Call):
            return None
        targets = bound.node.targets if isinstance(bound.node, cst.Assign) else ()
        target = targets[0].target if len(targets) == 1 else None
        if not isinstance(target, (cst.Tuple, cst.List)):
            return None
        variables = target.elements
        if any(isinstance(variable, cst.StarredElement) for variable in variables):
            return None
        places = [place for place, variable in enumerate(variables) if dotted(variable.value) == dotted(node)]
        return (bound.value, _Part(places[0], len(variables))) if len(places) == 1 else None

    def _returns_several(self, call: cst.Call) -> bool:
        """Whether a call runs a module of this file whose `forward` returns tuples."""
        made = self._kinds.construction(call.func)
        klass = self._classes.local(made.func) if made is not None else None
        forward = self._classes.method(klass, "forward") if klass is not None else None
        return forward is not None and any(
            isinstance(leave.value, cst.Tuple) for leave in self._tree.own(forward, cst.Return)
        )

    def _tensor_method(self, call: cst.Call) -> str | None:
        """`softmax` for `x.softmax(-1)`; None for a layer or helper of that name, which takes the tensor first."""
        if not isinstance(call.func, cst.Attribute) or is_name(call.func.value, "self"):
            return None
        name = call.func.attr.value
        if name in ("softmax", "log_softmax") and argument(call, "dim", 0) is not None:
            first = call.args[0]
            own = first.keyword is not None or isinstance(first.value, (cst.Integer, cst.UnaryOperation))
        else:
            own = name in ("sigmoid", "logsigmoid", "relu", "tanh") and not call.args
        return name if own and self._kinds.kind(call.func.value) in (None, Kind.TENSOR) else None

    def _of_module(self, module: Node, depth: int, part: _Part | None = None) -> Activation | None:
        """The last activation of a called module, or of one of the values it returns."""
        if isinstance(module, cst.Attribute) and module.attr.value == "forward":
            module = module.value
        if is_name(module, "self"):
            klass = self._tree.enclosing(module, cst.ClassDef)
            final = klass is not None and not self._overridden(klass)
            return self._of_class(klass, depth, part) if klass is not None and final else None
        construction = self._kinds.construction(module)
        if construction is None or self._changed(module):
            return None
        return self._of_construction(construction, depth, part)

    def _of_construction(self, made: cst.Call, depth: int, part: _Part | None = None) -> Activation | None:
        if depth == 0:
            return None
        called = self._names.qualified(made.func)
        if part is not None and called is not None:
            return None
        if called in _LAYER:
            return Activation(_LAYER[called], made)
        if called == "torch.nn.Sequential":
            last = self._last_layer(made)
            inner = self._kinds.construction(last) if last is not None else None
            return self._of_construction(inner, depth - 1) if inner is not None else None
        klass = self._classes.local(made.func)
        return self._of_class(klass, depth - 1, part) if klass is not None else None

    def _last_layer(self, sequential: cst.Call) -> Node | None:
        if not sequential.args or any(arg.star or arg.keyword is not None for arg in sequential.args):
            return None
        last = sequential.args[-1].value
        if isinstance(last, cst.Call) and self._names.qualified(last.func) == "collections.OrderedDict":
            pairs = last.args[0].value if last.args else None
            if not isinstance(pairs, cst.List) or not pairs.elements:
                return None
            pair = pairs.elements[-1].value
            return pair.elements[1].value if isinstance(pair, cst.Tuple) and len(pair.elements) == 2 else None
        return last

    def _of_class(self, klass: cst.ClassDef, depth: int, part: _Part | None = None) -> Activation | None:
        """The activation that every `return` of a class's `forward` ends with, or that one returned value has."""
        if not self._classes.derives(klass, "torch.nn.Module") or self._classes.method(klass, "__call__"):
            return None
        forward = self._classes.method(klass, "forward")
        leaves = self._tree.own(forward, cst.Return) if forward is not None else []
        returned: list[Node | None] = [leave.value for leave in leaves]
        if part is not None:
            returned = [value and part.of(self._kinds.origin(value)) for value in returned]
        found = [self.of(value, depth) if value is not None else None for value in returned]
        same = len({activation.name if activation is not None else None for activation in found}) == 1
        return found[0] if same else None

    def _overridden(self, klass: cst.ClassDef) -> bool:
        """Whether a subclass in this file overrides `forward`."""
        return any(
            self._classes.inherits(other, klass) and "forward" in self._classes.methods(other)
            for other in self._classes.all()
        )

    def _changed(self, module: Node) -> bool:
        """Whether a submodule is replaced after construction: `model.softmax = nn.Identity()`."""
        name = dotted(module)
        if name is None:
            return False
        for call in self._tree.all(cst.Call):
            receiver = _receiver(call, _CHANGES)
            if receiver is not None and f"{_path(receiver)}.".startswith(f"{name}."):
                return True
        targets: list[Node] = [
            item.target for assign in self._tree.all(cst.Assign) for item in assign.targets
        ]
        targets += [deleted.target for deleted in self._tree.all(cst.Del)]
        return any(_path(target).startswith(f"{name}.") for target in targets)


def _receiver(node: Node, methods: frozenset[str]) -> Node | None:
    """`x` for `x.view(-1)` if `view` is one of the methods."""
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in methods
    ):
        return node.func.value
    return None


def _first_operand(call: cst.Call) -> Node | None:
    """`x` in `torch.sum(x, dim=1)`."""
    return argument(call, "input", 0)


def _path(node: Node) -> str:
    """As `dotted`, with `model.net.[]` for `model.net[0]`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        parts.append(node.attr.value if isinstance(node, cst.Attribute) else "[]")
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if isinstance(node, cst.Name) else ""
