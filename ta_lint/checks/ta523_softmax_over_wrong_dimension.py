"""TA523: softmax over the batch before a loss or argmax over classes: a sample's scores depend on the others."""

from collections.abc import Iterator, Sequence

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("softmax", "log_softmax", "Softmax", "LogSoftmax"),)

_LOSSES = (
    ("torch.nn.NLLLoss", "torch.nn.functional.nll_loss"),
    ("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"),
)
_CHOICE = regex(r"torch\.(argmax|max|topk)")
_CHOICES = {"argmax": 0, "max": 0, "topk": 1}
_FUNCTIONS = frozenset({"softmax", "log_softmax"})
_SAME_BATCH = frozenset("clone contiguous div float masked_fill masked_fill_ mul tanh".split())
_RANK = 3
"""Of what `bmm` takes and gives."""


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for output, use in _used_by_class(module):
        if output.name not in _FUNCTIONS or output.node in seen or not _is_over_the_first(output, module):
            continue
        seen.add(output.node)
        message = f"`{output.name}` over dimension 0 mixes the samples of the batch: use `dim=1`"
        if module.is_here(output.node):
            yield Suspicion(output.node, message, ((use, "the classes are along dimension 1 here"),))
        else:
            yield Suspicion(use, message, ((output.node, f"`{output.name}` is applied here"),))
    for call in module.tree.all(cst.Call):
        if call not in seen and (product := _product_over_batch(call, module)) is not None:
            message = f"`{called_name(call)}` runs over the batch of `bmm` and mixes its samples: use the dimension of the keys"
            yield Suspicion(call, message, ((product, "dimension 0 of this product is the batch"),))


def _used_by_class(module: FileFacts) -> Iterator[tuple[Output, cst.Call]]:
    """The input of a loss or a choice whose classes are certainly along dimension 1."""
    for criterion, function in _LOSSES:
        for call, output in module.loss_inputs(criterion, function):
            if _takes_a_batch(call, module):
                yield output, call
    for call in module.tree.all(cst.Call):
        chosen = _chosen(call, module)
        output_of = module.outputs.of(chosen) if chosen is not None else None
        if output_of is not None:
            yield output_of, call


def _chosen(call: cst.Call, module: FileFacts) -> Node | None:
    """`x` of `x.argmax(1)`, `torch.max(x, dim=1)` and `x.topk(5, 1)`."""
    if spreads(call):
        return None
    called = module.qualified(call.func)
    operand: Node | None
    if called is not None:
        found = _CHOICE.fullmatch(called)
        if found is None:
            return None
        operand, dim = argument(call, "input", 0), argument(call, "dim", _CHOICES[found[1]] + 1)
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHOICES:
        operand, dim = call.func.value, argument(call, "dim", _CHOICES[call.func.attr.value])
    else:
        return None
    return operand if dim is not None and module.kinds.number(dim) == 1 else None


def _is_over_the_first(output: Output, module: FileFacts) -> bool:
    """Whether an activation says that it is over dimension 0, and is not of pairs of samples."""
    call = output.node
    if not isinstance(call, cst.Call):
        return False
    called = module.qualified(call.func) or ""
    is_layer = called in ("torch.nn.Softmax", "torch.nn.LogSoftmax")
    dim = argument(call, "dim", 1 if called and not is_layer else 0)
    return dim is not None and module.kinds.number(dim) == 0 and not _is_of_pairs(call, module)


def _product_over_batch(call: cst.Call, module: FileFacts) -> cst.Call | None:
    """The product of two batches of matrices over whose batch a softmax is, by the transpositions between."""
    if called_name(call) not in _FUNCTIONS or spreads(call):
        return None
    is_function = module.qualified(call.func) is not None
    operand = argument(call, "input", 0) if is_function else getattr(call.func, "value", None)
    dim = argument(call, "dim", 1 if is_function else 0)
    number = module.kinds.number(dim) if dim is not None else None
    if operand is None or number is None:
        return None
    product, axis = _batch_of_product(operand, module, 4)
    return product if axis == number % _RANK else None


def _batch_of_product(node: Node, module: FileFacts, depth: int) -> tuple[cst.Call | None, int | None]:
    """The `bmm` that a value comes from, and the dimension of the value along which its batch is."""
    call = module.kinds.origin(node)
    if not isinstance(call, cst.Call) or not depth:
        return None, None
    name = called_name(call)
    if name == "bmm":
        return call, 0
    is_function = module.qualified(call.func) is not None
    operand = argument(call, "input", 0) if is_function else getattr(call.func, "value", None)
    if operand is None or name not in _SAME_BATCH | {"transpose", "permute"}:
        return None, None
    product, axis = _batch_of_product(operand, module, depth - 1)
    return product, axis if name in _SAME_BATCH else _moved(axis, call, call.args[is_function:], module)


def _moved(axis: int | None, call: cst.Call, dims: Sequence[cst.Arg], module: FileFacts) -> int | None:
    """Where a transposition puts a dimension; None if that is not known."""
    numbers = [module.kinds.number(dim.value) for dim in dims]
    places = [int(number) % _RANK for number in numbers if number is not None]
    if axis is None or len(places) != len(numbers):
        return None
    if called_name(call) == "permute":
        return places.index(axis) if sorted(places) == list(range(_RANK)) else None
    if len(places) != 2:
        return None
    first, second = places
    return {first: second, second: first}.get(axis, axis)


def _is_of_pairs(call: cst.Call, module: FileFacts) -> bool:
    """Whether a softmax is of a product of two tensors: of each sample with each other one, either way is right."""
    operands = [
        *(arg.value for arg in call.args[:1]),
        *([call.func.value] if isinstance(call.func, cst.Attribute) else []),
    ]
    origins = [origin.node for operand in operands for origin in module.flow.of(operand).origins]
    return any(
        (isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.MatrixMultiply))
        or (
            isinstance(part, cst.Attribute)
            and part.attr.value in ("mm", "matmul", "einsum", "t", "T", "cdist")
        )
        for origin in origins
        for part in module.tree.within(origin, cst.BinaryOperation, cst.Attribute)
    )


def _takes_a_batch(call: cst.Call, module: FileFacts) -> bool:
    """Whether a loss certainly is of a batch: by a shape that the source shows, or in a loop over a loader that makes batches."""
    given, target = argument(call, "input", 0), argument(call, "target", 1)
    if given is None or target is None:
        return False
    shape, labels = module.shapes.shape(given), module.shapes.shape(target)
    if shape is not None or labels is not None:
        return (shape is not None and len(shape) > 1) or (labels is not None and len(labels) == 1)
    return any(
        all(_makes_batches(loader.given("batch_size")) for loader in one.loaders)
        for one in module.loaders.passes
        if one.loaders and module.tree.contains(one.loop, call)
    )


def _makes_batches(size: cst.BaseExpression | None) -> bool:
    return isinstance(size, (cst.Integer, cst.Name, cst.Attribute)) and not (
        isinstance(size, cst.Name) and size.value == "None"
    )
