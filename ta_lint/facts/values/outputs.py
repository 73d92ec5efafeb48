"""What a value is the output of: softmax, sigmoid, their logarithms, another activation, a layer without any, or unknown."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal, NamedTuple

import libcst as cst

from ta_lint.core.data import read
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Origin, Value
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, Tree, argument, is_name

_DEPTH = 8

Meaning = Literal["probability", "log-probability", "score", "activation"]

# Attributes that are a tensor with the same values.
_VIEWS = frozenset({"data", "T", "mT"})

_ZEROS = frozenset({"torch.zeros", "torch.zeros_like"})


class _Table(NamedTuple):
    """`data/outputs.toml`."""

    hands_on: dict[
        str, tuple[str, ...]
    ]  # the calls that change shape, order or precision, but not the values
    picks: dict[str, tuple[str, ...]]  # the calls that take some values out of a tensor
    between: dict[str, tuple[str, ...]]  # the calls that give values between those that they are given
    distributions: dict[str, tuple[str, ...]]
    given_out: dict[str, str]  # attributes of distributions
    meanings: dict[str, Meaning]
    functions: dict[str, str]
    layers: dict[str, str]


@cache
def _table() -> _Table:
    return read("outputs.toml", _Table)


@cache
def _hands_on() -> frozenset[str]:
    return frozenset(name for names in _table().hands_on.values() for name in names)


@cache
def _picks() -> frozenset[str]:
    return frozenset(name for names in _table().picks.values() for name in names)


@dataclass(frozen=True, eq=False)
class Output:
    """An activation by its functional name, and the expression that applies it or makes its layer.

    `linear` is the output of a linear layer or a convolution with no activation after it.
    """

    name: str
    node: Node

    @property
    def meaning(self) -> Meaning:
        return _table().meanings[self.name]

    @property
    def is_probability(self) -> bool:
        return self.meaning == "probability"

    @property
    def is_logarithm(self) -> bool:
        """Whether it is the logarithm of probabilities."""
        return self.meaning == "log-probability"

    @property
    def is_of(self) -> str:
        """The output as a message describes it."""
        return "a layer without activation" if self.name == "linear" else f"`{self.name}`"


class Outputs:
    """Which activation has made a value, on all ways that lead to it."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def of(self, node: Node) -> Output | None:
        """The activation whose output an expression certainly is."""
        return self.of_value(self._flow.of(node))

    def each(self, value: Value, use: Node) -> list[Output]:
        """The activations that a value certainly is the output of: one, or one for each of the branches before a use that make it."""
        if (found := self.of_value(value)) is not None:
            return [found]
        tree, ways = self._tree, self._unviewed(value).tensors
        home = tree.home(use)
        places = [_place(tree, way, home) for way in ways]
        pairs = list(combinations(places, 2))
        around = [home, *(above for above in tree.ancestors(use) if isinstance(above, cst.If))]
        if not pairs or not all(tree.apart(*pair) for pair in pairs):
            return []
        if not all(tree.contains(one, place) for one in around for place in places):
            return []  # the condition of the use may be that of one of them
        outputs = [self._all(Value((way,)), _DEPTH) for way in ways]
        return [output for output in outputs if output is not None]

    def of_value(self, value: Value) -> Output | None:
        """The activation whose output a value certainly is."""
        return self._all(value, _DEPTH)

    def _all(self, value: Value, depth: int) -> Output | None:
        """The activation that all origins of a value agree on."""
        return _agreed([self._made(origin, depth) for origin in value.tensors] if depth else [])

    def _made(self, origin: Origin, depth: int) -> Output | None:
        call = origin.node
        if isinstance(call, cst.Attribute) and call.attr.value in _VIEWS:
            return self._all(self._flow.of(call.value, (), origin.frame), depth - 1)
        if len(origin.path) == 1 and (given := self._given_out(origin)) is not None:
            return given
        if isinstance(call, cst.BinaryOperation) and self._is_normalised(call):
            return Output("softmax", call)
        if not isinstance(call, cst.Call) or not all(map(_keeps_values, origin.path)):
            return None
        called = self._names.qualified(call.func)
        if called is not None and (name := _table().functions.get(called)) is not None:
            return Output(name, call)
        if (name := self._tensor_method(call)) is not None:
            return Output(name, call)
        if (viewed := self._same_values(call, called)) is not None:
            return self._all(self._flow.of(viewed, (), origin.frame), depth - 1)
        if called in _table().between["functions"] and (viewed := argument(call, "input", 0)) is not None:
            return self._all(self._flow.of(viewed, (), origin.frame), depth - 1)
        if (joined := self._averaged(call, called)) is not None:
            return _agreed([self._all(self._flow.of(one, (), origin.frame), depth - 1) for one in joined])
        if called is not None:
            return None
        entered = self._flow.entered(call, origin.path, origin.frame)
        return (
            self._all(entered, depth - 1)
            if entered is not None
            else self._of_module(call.func, depth, origin.frame)
        )

    def _given_out(self, origin: Origin) -> Output | None:
        """The probabilities of a distribution, or their logarithms, which it normalises itself."""
        made, name = origin.node, origin.path[0]
        if not isinstance(made, cst.Call) or not isinstance(name, str) or name not in _table().given_out:
            return None
        is_distribution = self._names.qualified(made.func) in _table().distributions["classes"]
        return Output(_table().given_out[name], made) if is_distribution else None

    def _is_normalised(self, quotient: cst.BinaryOperation) -> bool:
        """Whether it is `e / e.sum(-1, keepdim=True)` with `e = x.exp()`: a softmax that is written out."""
        if not isinstance(quotient.operator, cst.Divide):
            return False
        summed = self._operand_of(quotient.right, frozenset({"sum"}))
        if summed is None or plain(summed) != plain(quotient.left):
            return False
        made = [origin.node for origin in self._flow.of(quotient.left).origins]
        return bool(made) and all(self._operand_of(one, frozenset({"exp"})) is not None for one in made)

    def _operand_of(self, node: Node, names: frozenset[str]) -> Node | None:
        return (
            self._operand(node, self._names.qualified(node.func), names)
            if isinstance(node, cst.Call)
            else None
        )

    def _averaged(self, call: cst.Call, called: str | None) -> list[Node] | None:
        """The tensors of which `torch.stack(...).mean(0)` is the mean; None for another call."""
        means, joins = _table().between["means"], _table().between["joins"]
        stacked = self._operand(call, called, frozenset(means))
        for origin in self._flow.of(stacked).origins if stacked is not None else ():
            joined = origin.node
            if not isinstance(joined, cst.Call) or self._names.qualified(joined.func) not in joins:
                return None
            given = argument(joined, "tensors", 0)
            if isinstance(given, (cst.ListComp, cst.GeneratorExp)):
                return [given.elt]
            if isinstance(given, (cst.List, cst.Tuple)):
                return [element.value for element in given.elements]
        return None

    def _same_values(self, call: cst.Call, called: str | None) -> Node | None:
        """`x` for `x.view(-1)` and `torch.flatten(x)`."""
        if called is not None:
            package, _, name = called.rpartition(".")
            return argument(call, "input", 0) if package == "torch" and name in _hands_on() else None
        return _receiver(call, _hands_on())

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

    def _of_module(self, module: Node, depth: int, frame: Frame | None) -> Output | None:
        """The last activation of a called layer, or of a sequence of them."""
        if isinstance(module, cst.Attribute) and module.attr.value == "forward":
            module = module.value
        return _agreed([self._of_construction(made, depth) for made in self._flow.makers(module, frame)])

    def _of_construction(self, made: cst.Call, depth: int) -> Output | None:
        if depth == 0:
            return None
        called = self._names.qualified(made.func)
        if called is not None and (name := _table().layers.get(called)) is not None:
            return Output(name, made)
        if called == "torch.nn.Sequential":
            last = _last_layer(made, self._names)
            inner = self._kinds.construction(last) if last is not None else None
            return self._of_construction(inner, depth - 1) if inner is not None else None
        function = self._flow.forward_of(made)
        return self._all(self._flow.returned(function), depth - 1) if function is not None else None

    # -- some of the outputs ----------------------------------------------------------------------------------

    def picked(self, node: Node) -> Output | None:
        """The activation of which an expression certainly is some of the outputs: by `gather`, or by a product with a one-hot
        tensor that is summed up.
        """
        return _agreed([self._picked(origin) for origin in self._flow.of(node).tensors])

    def _picked(self, origin: Origin) -> Output | None:
        call, frame = origin.node, origin.frame
        if not isinstance(call, cst.Call) or not all(map(_keeps_values, origin.path)):
            return None
        called = self._names.qualified(call.func)
        if (viewed := self._same_values(call, called)) is not None:
            return self._any_of(self._flow.of(viewed, (), frame))
        if (tensor := self._operand(call, called, _picks())) is not None:
            return self._all(self._flow.of(tensor, (), frame), _DEPTH)
        if (summed := self._operand(call, called, frozenset({"sum"}))) is not None:
            factors = [part for one in self._sources(summed, frame) for part in self._factors(one)]
            for one, other in (factors, factors[::-1]) if len(factors) == 2 else ():
                if self._is_one_hot(one):
                    return self._all(self._flow.of(other, (), frame), _DEPTH)
        return self._all(Value((origin,)), _DEPTH)

    def _any_of(self, value: Value) -> Output | None:
        return self._picked(value.origins[0]) if len(value.origins) == 1 else None

    def _operand(self, call: cst.Call, called: str | None, names: frozenset[str]) -> Node | None:
        """`x` in `x.sum(1)` and `torch.sum(x, dim=1)`."""
        if called is None:
            return _receiver(call, names)
        package, _, name = called.rpartition(".")
        return argument(call, "input", 0) if package == "torch" and name in names else None

    def _sources(self, node: Node, frame: Frame | None = None) -> list[Node]:
        """The one expression that a tensor's values come from, looking through views."""
        origins = self._unviewed(self._flow.of(node, (), frame)).origins
        return [one.node for one in origins if len(origins) == 1 and all(map(_keeps_values, one.path))]

    def _unviewed(self, value: Value) -> Value:
        """The tensor that a value has its values from, looking through views."""
        for _ in range(_DEPTH):
            only = value.origins[0] if len(value.origins) == 1 else None
            if only is None or not isinstance(only.node, cst.Call) or not all(map(_keeps_values, only.path)):
                break
            viewed = self._same_values(only.node, self._names.qualified(only.node.func))
            if viewed is None:
                break
            value = self._flow.of(viewed, (), only.frame)
        return value

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
        return any(self._makes_one_hot(source) for source in self._sources(node))

    def _makes_one_hot(self, origin: Node) -> bool:
        if not isinstance(origin, cst.Call):
            return False
        if self._names.qualified(origin.func) in ("torch.nn.functional.one_hot", "torch.eye"):
            return True
        into = _receiver(origin, frozenset({"scatter", "scatter_"}))
        value = argument(origin, "value", 2)
        zeros = into is not None and any(
            isinstance(made, cst.Call) and self._names.qualified(made.func) in _ZEROS
            for made in self._sources(into)
        )
        return zeros and value is not None and self._kinds.number(value) == 1

    def applied_to(self, output: Output, loss: cst.Call) -> cst.BaseExpression | None:
        """The argument of an activation, if only the input of a loss uses its result.

        None for a layer, whose input is elsewhere, and where other code uses the result too.
        """
        call, value = output.node, argument(loss, "input", 0)
        if value is None or not isinstance(call, cst.Call) or len(self._flow.of(value).origins) != 1:
            return None
        alone = self._tree.contains(value, call) and not self._is_given_away(call, value)
        if isinstance(value, cst.Name) and (bound := self._names.definition(value)) is not None:
            alone = bound.value is call and len(self._names.mentions(value)) == 2
        if not alone:
            return None
        called = self._names.qualified(call.func)
        if called is not None:
            return argument(call, "input", 0) if called in _table().functions else None
        return call.func.value if isinstance(call.func, cst.Attribute) and self._tensor_method(call) else None

    def _is_given_away(self, call: cst.Call, value: Node) -> bool:
        """Whether code that is not torch's is given the result of a call on its way into a value."""
        for above in self._tree.ancestors(call):
            if not self._tree.contains(value, above):
                break
            taker = self._tree.parent[above] if isinstance(above, cst.Arg) else None
            given = isinstance(taker, cst.Call) and self._names.qualified(taker.func) is None
            if given or isinstance(above, cst.NamedExpr):
                return True
        return False


def _place(tree: Tree, origin: Origin, home: Node) -> Node:
    """What makes a value in the code of a function itself: its expression, or the call that leads to that."""
    node, frame = origin.node, origin.frame
    while frame is not None and tree.home(node) is not home:
        node, frame = frame.call, frame.outer
    return node


def _agreed(outputs: list[Output | None]) -> Output | None:
    """The first of several outputs, if all are known and of one activation."""
    names = {output.name if output is not None else None for output in outputs}
    return outputs[0] if len(names) == 1 else None


def _keeps_values(key: object) -> bool:
    """Whether a part of a tensor has values of it: `x[0]`, `x[:, 1]`, `x[mask]`."""
    return not isinstance(key, str) or key == ":"


def _receiver(node: Node, methods: frozenset[str]) -> Node | None:
    """`x` for `x.view(-1)` if `view` is one of the methods."""
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in methods
    ):
        return node.func.value
    return None


def _last_layer(sequential: cst.Call, names: Names) -> Node | None:
    if not sequential.args or any(arg.star or arg.keyword is not None for arg in sequential.args):
        return None
    last = sequential.args[-1].value
    if isinstance(last, cst.Call) and names.qualified(last.func) == "collections.OrderedDict":
        pairs = last.args[0].value if last.args else None
        if not isinstance(pairs, cst.List) or not pairs.elements:
            return None
        pair = pairs.elements[-1].value
        return pair.elements[1].value if isinstance(pair, cst.Tuple) and len(pair.elements) == 2 else None
    return last
