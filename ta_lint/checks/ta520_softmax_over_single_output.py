"""TA520: softmax, log_softmax or argmax over a layer's only output: the result is the same for every sample."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.tree import Node, argument, is_name, spreads

KEYWORDS = (("softmax", "log_softmax", "argmax", "Softmax", "LogSoftmax"),)

_FUNCTION = regex(r"torch\.(nn\.functional\.|special\.)?(softmax|log_softmax|argmax)")
_METHODS = frozenset({"softmax", "log_softmax", "argmax"})
_LAYERS = {"torch.nn.Softmax": "softmax", "torch.nn.LogSoftmax": "log_softmax"}
_LOSS = regex(r"torch\.nn\.functional\.(\w*_loss|\w*cross_entropy\w*|kl_div)")
_RESULTS = {"softmax": "1", "log_softmax": "0", "argmax": "0"}


@dataclass(frozen=True, eq=False)
class _Applied:
    """`function` over dimension `dim` of `operand`; `made` is the call of the function, or that which makes the layer."""

    function: str
    operand: Node
    dim: float
    made: cst.Call


def check(module: FileFacts) -> Iterator[Suspicion]:
    has_layers = any(module.calls_to(name) for name in _LAYERS)
    for call in module.tree.all(cst.Call):
        if spreads(call):
            continue
        if has_layers and module.qualified(call.func) == "torch.nn.Sequential":
            yield from _in_sequence(call, module)
        elif (applied := _applied(call, has_layers, module)) is not None and _is_single(applied, module):
            yield _suspicion(call, applied.function)


def _suspicion(node: Node, function: str) -> Suspicion:
    result = _RESULTS[function]
    return Suspicion(
        node,
        f"`{function}` over the one output of a layer is {result} for every sample: use `sigmoid`, or two outputs",
    )


def _in_sequence(call: cst.Call, module: FileFacts) -> Iterator[Suspicion]:
    """`nn.Sequential(nn.Linear(8, 1), nn.Softmax(dim=1))`."""
    for before, arg in pairwise(call.args):
        function = (
            _LAYERS.get(module.qualified(arg.value.func) or "") if isinstance(arg.value, cst.Call) else None
        )
        width = module.widths.of_layer(before.value) if function is not None else None
        if isinstance(arg.value, cst.Call) and function is not None and width is not None:
            dim = argument(arg.value, "dim", 0)
            place = module.kinds.number(dim) if dim is not None else None
            if width.size == 1 and place in (width.dimension, 1):
                yield _suspicion(arg.value, function)


def _applied(call: cst.Call, has_layers: bool, module: FileFacts) -> _Applied | None:
    """What a call normalises or picks from, if the source says over which dimension."""
    called = module.qualified(call.func)
    made = call
    operand: Node | None
    if called is not None:
        found = _FUNCTION.fullmatch(called)
        function, operand, dim = (
            (found[2], argument(call, "input", 0), argument(call, "dim", 1)) if found else ("", None, None)
        )
    elif isinstance(call.func, cst.Attribute) and _is_method(call, module):
        function, operand, dim = call.func.attr.value, call.func.value, argument(call, "dim", 0)
    elif has_layers and len(call.args) == 1 and (layer := module.kinds.construction(call.func)) is not None:
        function, made = _LAYERS.get(module.qualified(layer.func) or "", ""), layer
        operand, dim = call.args[0].value, argument(layer, "dim", 0)
    else:
        return None
    place = module.kinds.number(dim) if dim is not None else None
    return _Applied(function, operand, place, made) if function and operand and place is not None else None


def _is_method(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call is a method of a tensor, `x.softmax(-1)`, and not a layer of that name, which takes a tensor."""
    func, dim = call.func, argument(call, "dim", 0)
    named = (
        isinstance(func, cst.Attribute) and func.attr.value in _METHODS and not is_name(func.value, "self")
    )
    return named and dim is not None and module.kinds.number(dim) is not None


def _is_single(applied: _Applied, module: FileFacts) -> bool:
    """Whether it is certainly over a layer's only output.

    Dimension 1 of a linear layer's output may also be the steps of a sequence, over which scores are rightly
    normalised: it counts if the tensor is known to have two dimensions, or the result goes into a loss.
    """
    if applied.dim not in (-1, 1):
        return False
    width = module.widths.of(applied.operand)
    if width is None or width.size != 1:
        return False
    if applied.dim == width.dimension:
        return True
    if width.dimension == 1:
        return False
    shape = module.shapes.shape(applied.operand)
    if shape is not None:
        return len(shape) == 2
    return applied.function == "log_softmax" or _goes_into_a_loss(applied, module)


def _goes_into_a_loss(applied: _Applied, module: FileFacts) -> bool:
    """Whether a loss gets the result, or, beside an argmax, the same outputs."""
    own = set(module.flow.of(applied.operand).origins)
    for call in module.tree.all(cst.Call):
        called = module.qualified(call.func)
        is_loss = _LOSS.fullmatch(called) is not None if called else module.kind(call.func) is Kind.CRITERION
        if not is_loss:
            continue
        value = module.flow.argument(call, "input", 0)
        output = module.outputs.of_value(value)
        if (output is not None and output.node is applied.made) or (
            applied.function == "argmax" and own & set(value.origins)
        ):
            return True
    return False
