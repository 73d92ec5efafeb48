"""How many outputs the layer has that made a value: 1 for `self.fc(x)` of `nn.Linear(8, 1)`; None if unknown."""

from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.shapes import ELEMENTWISE
from ta_lint.facts.values.value import Frame, Origin, Value
from ta_lint.syntax.tree import Node, argument

_DEPTH = 8

_LINEAR = frozenset({"torch.nn.Linear", "torch.nn.LazyLinear"})
_CONVOLUTION = regex(r"torch\.nn\.(Lazy)?Conv(Transpose)?[123]d")
_KEEPS_LAYER = regex(r"torch\.nn\.(\w*Dropout\w*|\w*ReLU6?|ELU|GELU|SiLU|Sigmoid|Tanh|Softplus|Identity)")
_KEEPS = regex(
    r"torch\.(nn\.functional\.)?(dropout|relu|elu|gelu|silu|leaky_relu|sigmoid|tanh|softplus|abs|exp|clamp)"
)


@dataclass(frozen=True)
class Width:
    """The number of outputs of a layer, and the dimension that they are along: the last, or that of the channels."""

    size: int
    dimension: int


class Widths:
    """The number of outputs behind expressions."""

    def __init__(self, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def of(self, node: Node) -> Width | None:
        """The outputs of the layer that an expression certainly is the output of, on all ways that lead to it."""
        return self._all(self._flow.of(node), _DEPTH)

    def of_layer(self, layer: Node) -> Width | None:
        """The outputs of a layer, or of the sequence of layers, that an expression certainly is."""
        made = self._kinds.construction(layer)
        return self._of_construction(made, None, None, _DEPTH) if made is not None else None

    def _all(self, value: Value, depth: int) -> Width | None:
        found = {self._made(origin, depth) for origin in value.tensors} if depth else set()
        return found.pop() if len(found) == 1 else None

    def _made(self, origin: Origin, depth: int) -> Width | None:
        call, frame = origin.node, origin.frame
        if not isinstance(call, cst.Call) or origin.path:
            return None
        called = self._names.qualified(call.func)
        if called is not None:
            return self._of_argument(call, frame, depth) if _KEEPS.fullmatch(called) else None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ELEMENTWISE:
            return self._all(self._flow.of(call.func.value, (), frame), depth - 1)
        entered = self._flow.entered(call, (), frame)
        if entered is not None:
            return self._all(entered, depth - 1)
        makers = self._flow.makers(call.func, frame)
        found = {self._of_construction(made, call, frame, depth) for made in makers}
        return found.pop() if len(found) == 1 else None

    def _of_argument(self, call: cst.Call, frame: Frame | None, depth: int) -> Width | None:
        given = argument(call, "input", 0)
        return self._all(self._flow.of(given, (), frame), depth - 1) if given is not None else None

    def _of_construction(
        self, made: cst.Call, call: cst.Call | None, frame: Frame | None, depth: int
    ) -> Width | None:
        """The outputs of a layer that one call makes and another one calls; None for the latter of a layer in a sequence."""
        called = self._names.qualified(made.func) or ""
        if called in _LINEAR:
            return self._size(argument(made, "out_features", 0 if "Lazy" in called else 1), -1)
        if _CONVOLUTION.fullmatch(called):
            return self._size(argument(made, "out_channels", 0 if "Lazy" in called else 1), 1)
        if called == "torch.nn.Sequential":
            return self._of_sequence(made, depth)
        if _KEEPS_LAYER.fullmatch(called) and call is not None:
            return self._of_argument(call, frame, depth)
        return None

    def _of_sequence(self, made: cst.Call, depth: int) -> Width | None:
        if not depth or any(arg.star or arg.keyword is not None for arg in made.args):
            return None
        for arg in reversed(made.args):
            inner = self._kinds.construction(arg.value)
            if inner is None:
                return None
            if not _KEEPS_LAYER.fullmatch(self._names.qualified(inner.func) or ""):
                return self._of_construction(inner, None, None, depth - 1)
        return None

    def _size(self, size: Node | None, dimension: int) -> Width | None:
        number = self._flow.constant(size, self._kinds.number) if size is not None else None
        return Width(int(number), dimension) if number is not None else None
