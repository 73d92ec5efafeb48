"""TA436: a moving average of weights is kept in half precision, where its updates round away."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument

KEYWORDS = (("lerp_", "add_", "mul_", "copy_", "data", "update_parameters", "+"),)
AROUND = (
    ("half", "bfloat16", "float16"),
    ("parameters", "state_dict", "named_parameters", "update_parameters"),
)

_WIDER = frozenset({"float", "double", "float32", "float64"})
_GENERATORS = frozenset(
    {"parameters", "named_parameters", "state_dict", "values", "items", "buffers", "named_buffers"}
)
_SLOWEST = 0.99


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Expr, cst.Assign, cst.AugAssign):
        found = _average(module, statement)
        if found is None:
            continue
        average, decay = found
        if decay is not None and decay < _SLOWEST:
            continue
        if any(name in _WIDER for name in _names(module, statement)):
            continue
        kept = _kept_by(module, average)
        if (
            kept is not None
            and module.half_precision.is_half(kept)
            and not module.half_precision.is_widened(kept)
        ):
            message = (
                f"`{module.code(average)}` is in half precision, where each update rounds away: use float32"
            )
            yield Suspicion(statement, message)


def _average(module: FileFacts, statement: Node) -> tuple[Node, float | None] | None:
    """The average that a statement moves a little, and its decay if that is known."""
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        return _of_call(module, statement.value)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        if isinstance(target, (cst.Subscript, cst.Attribute)):
            decay = _of_sum(module, statement.value, target)
            return (target, decay[0]) if decay is not None else None
    if isinstance(statement, cst.AugAssign) and isinstance(statement.operator, cst.AddAssign):
        return _after_product(module, statement)
    return None


def _of_call(module: FileFacts, call: cst.Call) -> tuple[Node, float | None] | None:
    if not isinstance(call.func, cst.Attribute):
        return None
    name, receiver = call.func.attr.value, call.func.value
    if name == "lerp_" and len(call.args) == 2:
        weight = module.kinds.number(call.args[1].value)
        return receiver, None if weight is None else 1 - weight
    if name == "add_" and isinstance(receiver, cst.Call) and called_name(receiver) == "mul_":
        if isinstance(receiver.func, cst.Attribute) and len(receiver.args) == 1:
            return receiver.func.value, module.kinds.number(receiver.args[0].value)
        return None
    if name == "copy_" and len(call.args) == 1:
        decay = _of_sum(module, call.args[0].value, receiver)
        return (receiver, decay[0]) if decay is not None else None
    if name == "update_parameters" and len(call.args) == 1:
        made = module.kinds.construction(receiver)
        if made is None or module.qualified(made.func) != "torch.optim.swa_utils.AveragedModel":
            return None
        function = argument(made, "multi_avg_fn", 3) or argument(made, "avg_fn", 2)
        if not isinstance(function, cst.Call) or called_name(function) not in (
            "get_ema_multi_avg_fn",
            "get_ema_avg_fn",
        ):
            return None
        given = argument(function, "decay", 0)
        return receiver, 0.999 if given is None else module.kinds.number(given)
    return None


def _of_sum(module: FileFacts, value: Node, target: Node) -> tuple[float | None] | None:
    """The decay of `decay * average + (1 - decay) * new`, in either order; None for another expression."""
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return None
    for part in (value.left, value.right):
        if not isinstance(part, cst.BinaryOperation) or not isinstance(part.operator, cst.Multiply):
            continue
        for average, factor in ((part.left, part.right), (part.right, part.left)):
            if plain(average) == plain(target):
                return (module.kinds.number(factor),)
    return None


def _after_product(module: FileFacts, statement: cst.AugAssign) -> tuple[Node, float | None] | None:
    """`v *= decay` just before `v += ...`."""
    product = next(module.tree.preceding(statement), None)
    if (
        isinstance(product, cst.AugAssign)
        and isinstance(product.operator, cst.MultiplyAssign)
        and plain(product.target) == plain(statement.target)
    ):
        return statement.target, module.kinds.number(product.value)
    return None


def _kept_by(module: FileFacts, average: Node) -> Node | None:
    """What holds an average: the model that a loop takes it of, the dictionary that it is an entry of, or an averaged model."""
    while isinstance(average, cst.Attribute) and average.attr.value == "data":
        average = average.value
    if isinstance(average, cst.Call) and called_name(average) == "detach":
        return _kept_by(module, average.func.value) if isinstance(average.func, cst.Attribute) else None
    if isinstance(average, cst.Subscript):
        return average.value
    if isinstance(average, cst.Attribute):
        return average
    if not isinstance(average, cst.Name):
        return None
    for loop in module.tree.loops(average):
        if isinstance(loop, cst.For) and any(
            name.value == average.value for name in module.tree.within(loop.target, cst.Name)
        ):
            return _iterated(loop, average.value)
    return average if module.kinds.construction(average) is not None else None


def _iterated(loop: cst.For, name: str) -> Node | None:
    """The model or dictionary whose values a loop gives to a variable."""
    target: Node = loop.target
    iterable: Node = loop.iter
    if isinstance(iterable, cst.Call) and called_name(iterable) == "zip" and isinstance(target, cst.Tuple):
        if len(target.elements) != len(iterable.args):
            return None
        for element, arg in zip(target.elements, iterable.args, strict=True):
            if _last(element.value) == name:
                return _model(arg.value)
        return None
    return _model(iterable) if _last(target) == name else None


def _last(target: Node) -> str | None:
    """The variable of the value: `p` of `p`, and of `name, p`."""
    if isinstance(target, cst.Tuple):
        return _last(target.elements[-1].value) if len(target.elements) == 2 else None
    return target.value if isinstance(target, cst.Name) else None


def _model(node: Node) -> Node | None:
    """`model` of `model.parameters()` and `model.state_dict().items()`."""
    found = False
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value not in _GENERATORS or node.args:
            return None
        node, found = node.func.value, True
    return node if found else None


def _names(module: FileFacts, statement: Node) -> Iterator[str]:
    for name in module.tree.within(statement, cst.Name):
        yield name.value
