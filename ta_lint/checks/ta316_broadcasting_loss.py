"""TA316: predictions `[N, 1]` and targets `[N]` broadcast to `[N, N]` in the loss."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.shapes import ELEMENTWISE
from ta_lint.facts.values.value import Frame, Origin, Value
from ta_lint.syntax.tree import Node, argument, dotted

_LOSSES = {
    "torch.nn.MSELoss": "torch.nn.functional.mse_loss",
    "torch.nn.L1Loss": "torch.nn.functional.l1_loss",
    "torch.nn.SmoothL1Loss": "torch.nn.functional.smooth_l1_loss",
    "torch.nn.HuberLoss": "torch.nn.functional.huber_loss",
}
# Losses that compare the sizes and raise.
_REFUSING = {
    "torch.nn.BCELoss": "torch.nn.functional.binary_cross_entropy",
    "torch.nn.BCEWithLogitsLoss": "torch.nn.functional.binary_cross_entropy_with_logits",
}
KEYWORDS = (
    tuple(
        "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss mse_loss l1_loss smooth_l1_loss "
        "huber_loss binary_cross_entropy binary_cross_entropy_with_logits mean sum".split()
    ),
)
AROUND = (("Linear", "*backward"),)

_REDUCES = frozenset({"mean", "sum"})
_DISTANCES = frozenset({"abs", "pow", "square"})

_FUNCTIONS = regex(r"torch\.(nn\.functional\.)?(relu|sigmoid|softplus|tanh|exp|clamp)")
_LAYERS = regex(r"torch\.nn\.(Sigmoid|Tanh|ReLU|Softplus|Identity|Dropout|Hardtanh|LeakyReLU)")
_DEPTH = 6


def check(module: FileFacts) -> Iterator[Suspicion]:
    for criterion, function in (_LOSSES | _REFUSING).items():
        for call in module.loss_calls(criterion, function):
            made, target = argument(call, "input", 0), argument(call, "target", 1)
            if made is not None and target is not None and _spread(made, target, module):
                refused = criterion in _REFUSING
                harm = "differ, which raises" if refused else "broadcast to `[N, N]`, which is all pairs"
                yield Suspicion(call, f"input `[N, 1]` and target `[N]` {harm}: give both the same shape")
    for difference in _written_out(module):
        sides = (difference.left, difference.right)
        spread = [other for one, other in (sides, sides[::-1]) if _spread(one, other, module)]
        if spread and not _is_computed(spread[0], module):
            message = "output `[N, 1]` and target `[N]` broadcast to `[N, N]`, which is all pairs: squeeze the output"
            yield Suspicion(difference, message)
    for difference in _averaged(module):
        sides = (difference.left, difference.right)
        if any(_spread(one, other, module) for one, other in (sides, sides[::-1])):
            yield Suspicion(
                difference,
                "the mean is over all pairs, as `[N, 1]` and `[N]` broadcast to `[N, N]`: give both one shape",
            )


def _spread(made: Node, target: Node, module: FileFacts) -> bool:
    return _is_line(target, module) and _is_column(made, module)


def _written_out(module: FileFacts) -> list[cst.BinaryOperation]:
    """Differences whose squares or magnitudes are averaged or summed: `((x - y) ** 2).mean()`."""
    found: dict[int, cst.BinaryOperation] = {}
    for call in module.tree.all(cst.Call):
        if called_name(call) not in _REDUCES:
            continue
        distance = _operand(call, _REDUCES, module)
        inner = _root(distance, module) if distance is not None else None
        difference = module.kinds.origin(inner) if inner is not None else None
        subtracts = isinstance(difference, cst.BinaryOperation) and isinstance(
            difference.operator, cst.Subtract
        )
        if isinstance(difference, cst.BinaryOperation) and subtracts and module.is_here(difference):
            found[module.tree.order(difference)] = difference
    return list(found.values())


def _averaged(module: FileFacts) -> Iterator[cst.BinaryOperation]:
    """Differences that are averaged directly, as in policy losses: `(alpha * log_p - q).mean()`."""
    for call in module.tree.all(cst.Call):
        operand = _operand(call, frozenset({"mean"}), module) if called_name(call) == "mean" else None
        if isinstance(operand, cst.BinaryOperation) and isinstance(operand.operator, cst.Subtract):
            yield operand


def _operand(call: cst.Call, names: frozenset[str], module: FileFacts) -> Node | None:
    """`x` in `x.mean()` and `torch.mean(x)`."""
    called = module.qualified(call.func)
    if called is not None:
        prefix, _, name = called.rpartition(".")
        return argument(call, "input", 0) if prefix == "torch" and name in names else None
    is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value in names
    return call.func.value if isinstance(call.func, cst.Attribute) and is_method else None


def _root(node: Node, module: FileFacts) -> Node | None:
    """`x` in `x ** 2`, `x * x`, `0.5 * x.pow(2)` and `torch.abs(x)`."""
    distance = module.kinds.origin(node)
    if isinstance(distance, cst.Call):
        return _operand(distance, _DISTANCES, module)
    if not isinstance(distance, cst.BinaryOperation):
        return None
    left, right = distance.left, distance.right
    if isinstance(distance.operator, cst.Power):
        return left if module.number(right) is not None else None
    if not isinstance(distance.operator, cst.Multiply):
        return None
    if dotted(left) is not None and dotted(left) == dotted(right):
        return left
    factors = [side for side in (left, right) if module.number(side) is None]
    return _root(factors[0], module) if len(factors) == 1 else None


def _is_computed(target: Node, module: FileFacts) -> bool:
    """Whether a model computes a target: all differences of two sets of outputs are taken on purpose."""
    return any(
        module.kind(call.func) is Kind.MODULE
        for part in module.parts.of(target)
        for call in module.tree.within(part, cst.Call)
    )


def _is_line(target: Node, module: FileFacts) -> bool:
    """Whether a target is certainly one-dimensional, with more than one value."""
    shape = module.shapes.shape(target)
    return shape is not None and len(shape) == 1 and shape[0] != 1


def _is_column(node: Node, module: FileFacts) -> bool:
    """Whether an expression is the output of a one-output model, for a batch, on all ways that lead to it."""
    shape = module.shapes.shape(node)
    if shape is not None and len(shape) == 2:
        return shape[0] != 1 and shape[1] == 1
    return _are_columns(module.flow.of(node), module, _DEPTH, of_batch=True)


def _are_columns(value: Value, module: FileFacts, depth: int, of_batch: bool) -> bool:
    origins = value.tensors if depth else ()
    return bool(origins) and all(_is_made_as_column(one, module, depth - 1, of_batch) for one in origins)


def _is_made_as_column(origin: Origin, module: FileFacts, depth: int, of_batch: bool) -> bool:
    made, frame = origin.node, origin.frame
    if origin.path:
        return False
    if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.Multiply):
        sides = ((made.left, made.right), (made.right, made.left))
        return any(
            _is_factor(one, module)
            and _are_columns(module.flow.of(other, (), frame), module, depth, of_batch)
            for one, other in sides
        )
    if not isinstance(made, cst.Call):
        return False
    if (inner := _elementwise(made, module)) is not None:
        return _are_columns(module.flow.of(inner, (), frame), module, depth, of_batch)
    if _keeps_dimension(made, module):
        return True
    if not _has_one_output(made, frame, module, depth):
        return False
    of_one = len(made.args) == 1 and not made.args[0].star
    return not of_batch or (of_one and _is_batch(made.args[0].value, frame, module))


def _is_factor(node: Node, module: FileFacts) -> bool:
    """Whether a value is a number, or a tensor of one: a literal, a setting, or what `item()` returned."""
    if module.number(node) is not None:
        return True
    names = module.names.bindings(node) if isinstance(node, cst.Name) else []
    values: list[Node] = [binding.value for binding in names if binding.value is not None] or [node]
    return all(
        isinstance(value, cst.Attribute)
        or module.number(value) is not None
        or module.shapes.shape(value) == ()
        or (isinstance(value, cst.Call) and called_name(value) == "item")
        for value in values
    )


def _keeps_dimension(value: Node, module: FileFacts) -> bool:
    """Whether a value is reduced over its last dimension, which stays as one: `log_p.sum(1, keepdim=True)`."""
    if not isinstance(value, cst.Call) or called_name(value) not in _REDUCES:
        return False
    kept = argument(value, "keepdim")
    dim = argument(value, "dim", 0 if module.qualified(value.func) is None else 1)
    return (
        kept is not None
        and module.boolean(kept) is True
        and dim is not None
        and module.number(dim) in (1, -1)
    )


def _elementwise(call: cst.Call, module: FileFacts) -> Node | None:
    """The operand of an elementwise call: `x` in `torch.sigmoid(x)` and `x.sigmoid()`."""
    called = module.qualified(call.func)
    if called is not None:
        return call.args[0].value if call.args and _FUNCTIONS.fullmatch(called) else None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in ELEMENTWISE:
        return call.func.value
    made = module.kinds.construction(call.func)
    if made is not None and call.args and _LAYERS.fullmatch(module.qualified(made.func) or ""):
        return call.args[0].value
    return None


def _has_one_output(call: cst.Call, frame: Frame | None, module: FileFacts, depth: int) -> bool:
    """Whether a call runs a model that ends in `Linear(..., 1)`."""
    makers = module.flow.makers(call.func, frame) if depth else []
    return bool(makers) and all(_ends_in_one(made, module, depth) for made in makers)


def _ends_in_one(made: cst.Call, module: FileFacts, depth: int) -> bool:
    """Whether a layer, or a sequence of them, has one output."""
    called = module.qualified(made.func)
    if called == "torch.nn.Linear":
        outputs = argument(made, "out_features", 1)
        return outputs is not None and module.number(outputs) == 1
    if called is None and (forward := module.flow.forward_of(made)) is not None:
        return _are_columns(module.flow.returned(forward), module, depth, of_batch=False)
    if called != "torch.nn.Sequential" or depth == 0 or any(arg.star for arg in made.args):
        return False
    for arg in reversed(made.args):
        last = module.kinds.construction(arg.value)
        if last is None or _LAYERS.fullmatch(module.qualified(last.func) or "") is None:
            return last is not None and _ends_in_one(last, module, depth - 1)
    return False


def _is_batch(node: Node, frame: Frame | None, module: FileFacts) -> bool:
    """Whether a model's input has a batch dimension: by its shape, or because it comes from a loader."""
    shape = module.shapes.shape(node, frame)
    if shape is not None:
        return len(shape) > 1
    value = module.flow.of(node, (), frame)
    for _ in range(_DEPTH):
        call = value.origins[0].node
        inner = _elementwise(call, module) if isinstance(call, cst.Call) else None
        if len(value.origins) != 1 or inner is None:
            break
        value = module.flow.of(inner, (), value.origins[0].frame)
    loops = [origin.node for origin in value.origins]
    names = [alias for alias in value.aliases if isinstance(alias, cst.Name)]
    passes = [found.loop for name in names if (found := module.loaders.pass_of(name)) is not None]
    return all(loop in passes for loop in loops)
